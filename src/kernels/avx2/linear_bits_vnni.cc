#include "kernels/avx2/linear_bits.h"
#include "kernels/avx2/linear_bits_kernel.h"

namespace drafthorse::avx2 {
namespace {

/// 4 products of an unsigned and a signed byte and their sum in one instruction.
struct VnniPairProduct {
  template <std::size_t kStride, int kRows>
  [[gnu::always_inline]] static void add(IntegerSums<kRows>& dot, Integers a, Integers b, const std::byte* x) {
    if constexpr (kRows > 0) {
      const __m256i v = broadcast_int(x);
      const __m256i next = broadcast_int(x + 4);
      dot.low = _mm256_dpbusd_avx_epi32(dot.low, a.low, v);
      dot.high = _mm256_dpbusd_avx_epi32(dot.high, a.high, v);
      dot.low = _mm256_dpbusd_avx_epi32(dot.low, b.low, next);
      dot.high = _mm256_dpbusd_avx_epi32(dot.high, b.high, next);
      add<kStride>(dot.rest, a, b, x + kStride);
    }
  }
};

}  // namespace

void linear_bits_vnni(const LinearTask& task) {
  with_bit_format(task.type, [&]<typename Format>(Format) { Walk<BitKernel<Format, VnniPairProduct>>(task).run(); });
}

}  // namespace drafthorse::avx2
