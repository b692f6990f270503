#pragma once

#include <immintrin.h>

#include <cstdint>

/// The elementary functions of scalar/functions.h, sixteen values at a time: the same operations in the same order, the
/// same bits. Everything here is local to the including file, so that no AVX-512 code can stand in for another table's.
namespace drafthorse::avx512 {
namespace {

using Index = std::int64_t;

constexpr Index kLanes = 16;
constexpr __mmask16 kAllLanes = 0xffff;

/// The lanes that hold elements [i, n).
inline __mmask16 lanes_left(Index i, Index n) {
  return n - i >= kLanes ? kAllLanes : static_cast<__mmask16>((1u << (n - i)) - 1u);
}

inline __m512 splat(float x) { return _mm512_set1_ps(x); }
inline __m512i bits_of(__m512 x) { return _mm512_castps_si512(x); }
inline __m512 from_bits(__m512i x) { return _mm512_castsi512_ps(x); }
inline __m512 negated(__m512 x) { return from_bits(_mm512_xor_si512(bits_of(x), _mm512_set1_epi32(INT32_MIN))); }
inline __m512 magnitude(__m512 x) { return from_bits(_mm512_and_si512(bits_of(x), _mm512_set1_epi32(INT32_MAX))); }

inline __m512 exp(__m512 x) {
  x = _mm512_max_ps(splat(-104.0f), x);
  x = _mm512_min_ps(splat(89.0f), x);
  const __m512 round = splat(0x1.8p23f);
  const __m512 n = _mm512_sub_ps(_mm512_fmadd_ps(x, splat(0x1.715476p+0f), round), round);
  __m512 r = _mm512_fmadd_ps(n, splat(-0x1.62e430p-1f), x);
  r = _mm512_fmadd_ps(n, splat(0x1.05c610p-29f), r);
  __m512 p = splat(0x1.6a2448p-10f);
  p = _mm512_fmadd_ps(p, r, splat(0x1.1239d6p-7f));
  p = _mm512_fmadd_ps(p, r, splat(0x1.5558f2p-5f));
  p = _mm512_fmadd_ps(p, r, splat(0x1.555492p-3f));
  p = _mm512_fmadd_ps(p, r, splat(0x1.fffffcp-2f));
  p = _mm512_fmadd_ps(p, r, splat(1.0f));
  p = _mm512_fmadd_ps(p, r, splat(1.0f));
  return _mm512_scalef_ps(p, n);  // rounded once, as in scalar/
}

inline __m512 log1p_reduced(__m512 f) {
  __m512 p = splat(-0x1.6fe64cp-5f);
  p = _mm512_fmadd_ps(p, f, splat(0x1.abf6b6p-4f));
  p = _mm512_fmadd_ps(p, f, splat(-0x1.0d9002p-3f));
  p = _mm512_fmadd_ps(p, f, splat(0x1.2897b6p-3f));
  p = _mm512_fmadd_ps(p, f, splat(-0x1.54f23ep-3f));
  p = _mm512_fmadd_ps(p, f, splat(0x1.99685ap-3f));
  p = _mm512_fmadd_ps(p, f, splat(-0x1.000024p-2f));
  p = _mm512_fmadd_ps(p, f, splat(0x1.5555a6p-2f));
  p = _mm512_fmadd_ps(p, f, splat(-0.5f));
  return _mm512_fmadd_ps(_mm512_mul_ps(f, f), p, f);
}

inline __m512i exponent_offset(__m512 x) {
  const __m512i shifted = _mm512_sub_epi32(bits_of(x), _mm512_set1_epi32(0x3f400000));
  return _mm512_and_si512(shifted, _mm512_set1_epi32(static_cast<int>(0xff800000u)));
}

inline __m512 log(__m512 x) {
  const __m512i offset = exponent_offset(x);
  const __m512 f = _mm512_sub_ps(from_bits(_mm512_sub_epi32(bits_of(x), offset)), splat(1.0f));
  const __m512 k = _mm512_cvtepi32_ps(_mm512_srai_epi32(offset, 23));
  return _mm512_fmadd_ps(k, splat(0x1.62e430p-1f), log1p_reduced(f));
}

inline __m512 log1p(__m512 y) {
  const __m512i offset = exponent_offset(_mm512_add_ps(splat(1.0f), y));
  const __m512 down = from_bits(_mm512_sub_epi32(_mm512_set1_epi32(0x3f800000), offset));
  const __m512 f = _mm512_fmadd_ps(y, down, _mm512_sub_ps(down, splat(1.0f)));
  const __m512 k = _mm512_cvtepi32_ps(_mm512_srai_epi32(offset, 23));
  return _mm512_fmadd_ps(k, splat(0x1.62e430p-1f), log1p_reduced(f));
}

inline __m512 tanh(__m512 x) {
  const __m512 size = magnitude(x);
  const __m512 t = _mm512_mul_ps(size, size);
  __m512 q = splat(-0x1.9454f2p-8f);
  q = _mm512_fmadd_ps(q, t, splat(0x1.5811f6p-6f));
  q = _mm512_fmadd_ps(q, t, splat(-0x1.b905c4p-5f));
  q = _mm512_fmadd_ps(q, t, splat(0x1.110c5ep-3f));
  q = _mm512_fmadd_ps(q, t, splat(-0x1.555548p-2f));
  const __m512 small = _mm512_fmadd_ps(_mm512_mul_ps(size, t), q, size);
  const __m512 e = exp(_mm512_add_ps(size, size));
  const __m512 large = _mm512_sub_ps(splat(1.0f), _mm512_div_ps(splat(2.0f), _mm512_add_ps(e, splat(1.0f))));
  const __m512i sign = _mm512_and_si512(bits_of(x), _mm512_set1_epi32(INT32_MIN));
  const __mmask16 is_small = _mm512_cmp_ps_mask(size, splat(0.5625f), _CMP_LT_OQ);
  return from_bits(_mm512_or_si512(bits_of(_mm512_mask_mov_ps(large, is_small, small)), sign));
}

inline __m512 silu(__m512 x) { return _mm512_div_ps(x, _mm512_add_ps(splat(1.0f), exp(negated(x)))); }

inline __m512 softplus(__m512 x) {
  return _mm512_add_ps(_mm512_max_ps(splat(0.0f), x), log1p(exp(negated(magnitude(x)))));
}

/// x rounded to bf16, nearest even, as the upper halves of the lanes; NaN stays NaN. Never flushes, unlike
/// vcvtneps2bf16.
inline __m512i bf16_bits(__m512 x) {
  const __m512i bits = bits_of(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_and_si512(_mm512_mask_mov_epi32(rounded, nan, quiet), _mm512_set1_epi32(static_cast<int>(0xffff0000u)));
}

/// The 32 values (low, high) rounded to bf16, in order.
inline __m512i packed_bf16(__m512 low, __m512 high) {
  const __m256i first = _mm512_cvtepi32_epi16(_mm512_srli_epi32(bf16_bits(low), 16));
  const __m256i second = _mm512_cvtepi32_epi16(_mm512_srli_epi32(bf16_bits(high), 16));
  return _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
}

/// Elements [i, n) of x, at most sixteen, 0 in the other lanes; i may lie past n.
inline __m512 load_some(const float* x, Index i, Index n) {
  return i < n ? _mm512_maskz_loadu_ps(lanes_left(i, n), x + i) : _mm512_setzero_ps();
}

/// Lane j + 8 is added to j, then + 4, + 2, + 1.
inline float sum_of_lanes(__m512 lanes) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

}  // namespace
}  // namespace drafthorse::avx512
