#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/linear_walk.h"

/// Groups of activations in registers. Included by files compiled for different instruction sets, so everything has
/// internal linkage.
namespace drafthorse::avx512 {
namespace {

/// Up to 32 values in two vectors, zeros past `count`.
struct GroupValues {
  __m512 low;
  __m512 high;

  GroupValues(const float* x, std::int64_t count) {
    const std::uint32_t mask = count >= kGroup ? 0xffffffffu : (1u << count) - 1;
    low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x);
    high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), x + 16);
  }
};

/// A group as 8-bit integers, one int32 each: x is about scale * q. docs/numerics.md, "q8_0 activations".
struct QuantizedGroup {
  __m512i low = _mm512_setzero_si512();
  __m512i high = _mm512_setzero_si512();
  float scale = 0.0f;

  explicit QuantizedGroup(const GroupValues& v) {
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    const __m512i largest = _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(v.low), magnitude),
                                             _mm512_and_si512(_mm512_castps_si512(v.high), magnitude));
    const auto amax_bits = static_cast<std::uint32_t>(_mm512_reduce_max_epi32(largest));
    float amax;
    __builtin_memcpy(&amax, &amax_bits, 4);
    if (amax_bits >= kInfinityBits) {
      __builtin_memcpy(&scale, &kNanBits, 4);
    } else if (amax >= kSmallestAmax) {
      scale = amax / 127.0f;
      const __m512 inverse = _mm512_set1_ps(127.0f / amax);
      low = _mm512_cvtps_epi32(_mm512_mul_ps(v.low, inverse));
      high = _mm512_cvtps_epi32(_mm512_mul_ps(v.high, inverse));
    }
  }

  std::int32_t low_sum() const { return _mm512_reduce_add_epi32(low); }
  std::int32_t high_sum() const { return _mm512_reduce_add_epi32(high); }
  std::int32_t sum() const { return _mm512_reduce_add_epi32(_mm512_add_epi32(low, high)); }

  /// 32 bytes.
  void store(std::byte* out) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtepi32_epi8(low));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 16), _mm512_cvtepi32_epi8(high));
  }
};

}  // namespace
}  // namespace drafthorse::avx512
