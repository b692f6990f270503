#pragma once

#include <immintrin.h>

#include <cstdint>

/// The elementary functions of scalar/functions.h, eight values at a time: the same operations in the same order, the
/// same bits. Everything here is local to the including file, so that no AVX2 code can stand in for another table's.
namespace drafthorse::avx2 {
namespace {

using Index = std::int64_t;

constexpr Index kLanes = 8;

inline __m256 splat(float x) { return _mm256_set1_ps(x); }
inline __m256i bits_of(__m256 x) { return _mm256_castps_si256(x); }
inline __m256 from_bits(__m256i x) { return _mm256_castsi256_ps(x); }
inline __m256 negated(__m256 x) { return _mm256_xor_ps(x, splat(-0.0f)); }
inline __m256 magnitude(__m256 x) { return _mm256_andnot_ps(splat(-0.0f), x); }

/// All ones in the lanes that hold elements [i, n).
inline __m256i lanes_left(Index i, Index n) {
  const Index left = n - i < kLanes ? n - i : kLanes;
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(left)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/// Elements [i, n) of x, at most eight; 0 in the other lanes.
inline __m256 load_some(const float* x, Index i, Index n) {
  return n - i >= kLanes ? _mm256_loadu_ps(x + i) : _mm256_maskload_ps(x + i, lanes_left(i, n));
}
inline void store_some(float* x, Index i, Index n, __m256 v) {
  if (n - i >= kLanes) return _mm256_storeu_ps(x + i, v);
  _mm256_maskstore_ps(x + i, lanes_left(i, n), v);
}

/// 2^n for whole n in [-126, 127].
inline __m256 power_of_two(__m256i n) {
  return from_bits(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

inline __m256 exp(__m256 x) {
  x = _mm256_max_ps(splat(-104.0f), x);
  x = _mm256_min_ps(splat(89.0f), x);
  const __m256 round = splat(0x1.8p23f);
  const __m256 n = _mm256_sub_ps(_mm256_fmadd_ps(x, splat(0x1.715476p+0f), round), round);
  __m256 r = _mm256_fmadd_ps(n, splat(-0x1.62e430p-1f), x);
  r = _mm256_fmadd_ps(n, splat(0x1.05c610p-29f), r);
  __m256 p = splat(0x1.6a2448p-10f);
  p = _mm256_fmadd_ps(p, r, splat(0x1.1239d6p-7f));
  p = _mm256_fmadd_ps(p, r, splat(0x1.5558f2p-5f));
  p = _mm256_fmadd_ps(p, r, splat(0x1.555492p-3f));
  p = _mm256_fmadd_ps(p, r, splat(0x1.fffffcp-2f));
  p = _mm256_fmadd_ps(p, r, splat(1.0f));
  p = _mm256_fmadd_ps(p, r, splat(1.0f));
  const __m256i whole = _mm256_cvtps_epi32(n);
  const __m256i first = _mm256_srai_epi32(whole, 1);
  return _mm256_mul_ps(_mm256_mul_ps(p, power_of_two(first)), power_of_two(_mm256_sub_epi32(whole, first)));
}

inline __m256 log1p_reduced(__m256 f) {
  __m256 p = splat(-0x1.6fe64cp-5f);
  p = _mm256_fmadd_ps(p, f, splat(0x1.abf6b6p-4f));
  p = _mm256_fmadd_ps(p, f, splat(-0x1.0d9002p-3f));
  p = _mm256_fmadd_ps(p, f, splat(0x1.2897b6p-3f));
  p = _mm256_fmadd_ps(p, f, splat(-0x1.54f23ep-3f));
  p = _mm256_fmadd_ps(p, f, splat(0x1.99685ap-3f));
  p = _mm256_fmadd_ps(p, f, splat(-0x1.000024p-2f));
  p = _mm256_fmadd_ps(p, f, splat(0x1.5555a6p-2f));
  p = _mm256_fmadd_ps(p, f, splat(-0.5f));
  return _mm256_fmadd_ps(_mm256_mul_ps(f, f), p, f);
}

inline __m256i exponent_offset(__m256 x) {
  const __m256i shifted = _mm256_sub_epi32(bits_of(x), _mm256_set1_epi32(0x3f400000));
  return _mm256_and_si256(shifted, _mm256_set1_epi32(static_cast<int>(0xff800000u)));
}

inline __m256 log(__m256 x) {
  const __m256i offset = exponent_offset(x);
  const __m256 f = _mm256_sub_ps(from_bits(_mm256_sub_epi32(bits_of(x), offset)), splat(1.0f));
  const __m256 k = _mm256_cvtepi32_ps(_mm256_srai_epi32(offset, 23));
  return _mm256_fmadd_ps(k, splat(0x1.62e430p-1f), log1p_reduced(f));
}

inline __m256 log1p(__m256 y) {
  const __m256i offset = exponent_offset(_mm256_add_ps(splat(1.0f), y));
  const __m256 down = from_bits(_mm256_sub_epi32(_mm256_set1_epi32(0x3f800000), offset));
  const __m256 f = _mm256_fmadd_ps(y, down, _mm256_sub_ps(down, splat(1.0f)));
  const __m256 k = _mm256_cvtepi32_ps(_mm256_srai_epi32(offset, 23));
  return _mm256_fmadd_ps(k, splat(0x1.62e430p-1f), log1p_reduced(f));
}

inline __m256 tanh(__m256 x) {
  const __m256 size = magnitude(x);
  const __m256 t = _mm256_mul_ps(size, size);
  __m256 q = splat(-0x1.9454f2p-8f);
  q = _mm256_fmadd_ps(q, t, splat(0x1.5811f6p-6f));
  q = _mm256_fmadd_ps(q, t, splat(-0x1.b905c4p-5f));
  q = _mm256_fmadd_ps(q, t, splat(0x1.110c5ep-3f));
  q = _mm256_fmadd_ps(q, t, splat(-0x1.555548p-2f));
  const __m256 small = _mm256_fmadd_ps(_mm256_mul_ps(size, t), q, size);
  const __m256 e = exp(_mm256_add_ps(size, size));
  const __m256 large = _mm256_sub_ps(splat(1.0f), _mm256_div_ps(splat(2.0f), _mm256_add_ps(e, splat(1.0f))));
  const __m256 result = _mm256_blendv_ps(large, small, _mm256_cmp_ps(size, splat(0.5625f), _CMP_LT_OQ));
  return _mm256_or_ps(result, _mm256_and_ps(x, splat(-0.0f)));
}

inline __m256 silu(__m256 x) { return _mm256_div_ps(x, _mm256_add_ps(splat(1.0f), exp(negated(x)))); }

inline __m256 softplus(__m256 x) {
  return _mm256_add_ps(_mm256_max_ps(splat(0.0f), x), log1p(exp(negated(magnitude(x)))));
}

/// x rounded to bf16, nearest even, as the upper halves of the lanes; NaN stays NaN.
inline __m256i bf16_bits(__m256 x) {
  const __m256i bits = bits_of(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = bits_of(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_and_si256(_mm256_blendv_epi8(rounded, quiet, nan), _mm256_set1_epi32(static_cast<int>(0xffff0000u)));
}

/// Sixteen lanes of a sum: lane j + 8 is added to j, then + 4, + 2, + 1.
inline float sum_of_lanes(__m256 low, __m256 high) {
  const __m256 eight = _mm256_add_ps(low, high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/// The largest lane.
inline float largest_lane(__m256 x) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

}  // namespace
}  // namespace drafthorse::avx2
