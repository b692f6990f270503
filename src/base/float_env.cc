#include "base/float_env.h"

#include <xmmintrin.h>

namespace drafthorse {
namespace {

constexpr unsigned kContract = 0x1f80;

}  // namespace

FloatEnv::FloatEnv() : saved_(_mm_getcsr()) { _mm_setcsr(kContract); }
FloatEnv::~FloatEnv() { _mm_setcsr(saved_); }

}  // namespace drafthorse
