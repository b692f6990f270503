#include "kernels/avx512/choices.h"

#include "kernels/avx512/functions.h"
#include "kernels/noise_key.h"

namespace drafthorse::avx512 {
namespace {

constexpr float kInfinity = __builtin_inff();

/// The largest value, NaN passed over; -infinity when there is none.
float largest(const float* x, Index n) {
  constexpr int kStreams = 4;
  const __m512 none = splat(-kInfinity);
  __m512 best[kStreams] = {none, none, none, none};
  Index i = 0;
  for (; i + kStreams * kLanes <= n; i += kStreams * kLanes) {
    for (int s = 0; s < kStreams; ++s) best[s] = _mm512_max_ps(_mm512_loadu_ps(x + i + s * kLanes), best[s]);
  }
  for (; i < n; i += kLanes) {
    best[0] = _mm512_max_ps(_mm512_mask_loadu_ps(none, lanes_left(i, n), x + i), best[0]);
  }
  return _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(best[0], best[1]), _mm512_max_ps(best[2], best[3])));
}

/// mix64 of base/random.h.
inline __m512i mix64(__m512i z) {
  z = _mm512_xor_si512(z, _mm512_srli_epi64(z, 30));
  z = _mm512_mullo_epi64(z, _mm512_set1_epi64(static_cast<long long>(0xbf58476d1ce4e5b9u)));
  z = _mm512_xor_si512(z, _mm512_srli_epi64(z, 27));
  z = _mm512_mullo_epi64(z, _mm512_set1_epi64(static_cast<long long>(0x94d049bb133111ebu)));
  return _mm512_xor_si512(z, _mm512_srli_epi64(z, 31));
}

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

/// Lanes 0-7 (8-15) of 32-bit words, widened with zeros.
inline __m512i low_words(__m512i x) { return _mm512_cvtepu32_epi64(_mm512_castsi512_si256(x)); }
inline __m512i high_words(__m512i x) { return _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(x, 1)); }

/// The bits of v = 1 - u from 64 random bits, see scalar/choices.cc. A conversion to double counts the leading zeros.
inline __m256i uniform_bits(__m512i random) {
  const __m512i upper = _mm512_or_si512(_mm512_srli_epi64(random, 23), _mm512_set1_epi64(1));
  const __m512i binade = _mm512_srli_epi64(_mm512_castpd_si512(_mm512_cvtepu64_pd(upper)), 52);
  const __m512i exponent = _mm512_sub_epi64(binade, _mm512_set1_epi64(1023 - 86));
  const __m512i mantissa = _mm512_and_si512(random, _mm512_set1_epi64(0x7fffff));
  return _mm512_cvtepi64_epi32(_mm512_or_si512(_mm512_slli_epi64(exponent, 23), mantissa));
}

/// Gumbel noise of the ids `low` and `high`, as 64-bit words.
inline __m512 gumbel(std::uint64_t key, __m512i low, __m512i high) {
  const __m512i golden = _mm512_set1_epi64(static_cast<long long>(kGolden));
  const __m512i start = _mm512_set1_epi64(static_cast<long long>(key + kGolden));
  const __m256i a = uniform_bits(mix64(_mm512_add_epi64(start, _mm512_mullo_epi64(golden, low))));
  const __m256i b = uniform_bits(mix64(_mm512_add_epi64(start, _mm512_mullo_epi64(golden, high))));
  const __m512 v = from_bits(_mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1));
  return negated(log(negated(log1p(negated(v)))));
}

inline __m512i eight_from(Index first) {
  return _mm512_add_epi64(_mm512_set1_epi64(first), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
}

}  // namespace

std::int64_t argmax(const float* x, std::int64_t n) {
  const __m512 best = splat(largest(x, n));
  for (Index i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __mmask16 equal = _mm512_mask_cmp_ps_mask(lanes, _mm512_maskz_loadu_ps(lanes, x + i), best, _CMP_EQ_OQ);
    if (equal != 0) return i + __builtin_ctz(equal);
  }
  return 0;  // nothing but NaN
}

std::uint64_t logits_hash(const float* x, std::int64_t first_id, std::int64_t n) {
  const __m512i golden = _mm512_set1_epi64(static_cast<long long>(kGolden));
  __m512i sum = _mm512_setzero_si512();
  for (Index i = 0; i < n; i += kLanes) {
    const unsigned lanes = lanes_left(i, n);
    const __m512i bits = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(lanes), x + i);
    const __m512i low = _mm512_or_si512(_mm512_slli_epi64(eight_from(first_id + i), 32), low_words(bits));
    const __m512i high = _mm512_or_si512(_mm512_slli_epi64(eight_from(first_id + i + 8), 32), high_words(bits));
    sum = _mm512_mask_add_epi64(sum, static_cast<__mmask8>(lanes), sum, mix64(_mm512_add_epi64(low, golden)));
    sum = _mm512_mask_add_epi64(sum, static_cast<__mmask8>(lanes >> 8), sum, mix64(_mm512_add_epi64(high, golden)));
  }
  alignas(64) std::uint64_t lane[8];
  _mm512_store_si512(lane, sum);
  return lane[0] + lane[1] + lane[2] + lane[3] + lane[4] + lane[5] + lane[6] + lane[7];
}

void softmax(const float* x, float temperature, float* out, std::int64_t n) {
  const __m512 best = splat(largest(x, n));
  const __m512 divisor = splat(temperature);
  __m512 lanes_sum = _mm512_setzero_ps();
  for (Index i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 v = _mm512_maskz_loadu_ps(lanes, x + i);
    const __mmask16 present = _mm512_mask_cmp_ps_mask(lanes, v, splat(-kInfinity), _CMP_NEQ_UQ);
    const __m512 e = _mm512_maskz_mov_ps(present, exp(_mm512_div_ps(_mm512_sub_ps(v, best), divisor)));
    lanes_sum = _mm512_add_ps(lanes_sum, e);
    _mm512_mask_storeu_ps(out + i, lanes, e);
  }
  const float sum = sum_of_lanes(lanes_sum);
  if (sum == 0.0f) return;  // nothing but -infinity
  for (Index i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    _mm512_mask_storeu_ps(out + i, lanes, _mm512_div_ps(_mm512_maskz_loadu_ps(lanes, out + i), splat(sum)));
  }
}

float log_sum_exp(const float* x, std::int64_t n) {
  const float best = largest(x, n);
  __m512 lanes_sum = _mm512_setzero_ps();
  for (Index i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 v = _mm512_maskz_loadu_ps(lanes, x + i);
    const __mmask16 present = _mm512_mask_cmp_ps_mask(lanes, v, splat(-kInfinity), _CMP_NEQ_UQ);
    lanes_sum = _mm512_add_ps(lanes_sum, _mm512_maskz_mov_ps(present, exp(_mm512_sub_ps(v, splat(best)))));
  }
  const float sum = sum_of_lanes(lanes_sum);
  return sum == 0.0f ? -kInfinity : best + _mm512_cvtss_f32(log(splat(sum)));
}

void gumbel_scores(const float* z, const std::int32_t* ids, std::int64_t first_id, float temperature,
                   std::uint64_t seed, std::uint64_t position, float* out, std::int64_t n) {
  const std::uint64_t key = noise_key(seed, position);
  for (Index i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512i listed = ids != nullptr ? _mm512_maskz_loadu_epi32(lanes, ids + i) : _mm512_setzero_si512();
    const __m512i low = ids != nullptr ? low_words(listed) : eight_from(first_id + i);
    const __m512i high = ids != nullptr ? high_words(listed) : eight_from(first_id + i + 8);
    const __m512 scaled = _mm512_div_ps(_mm512_maskz_loadu_ps(lanes, z + i), splat(temperature));
    _mm512_mask_storeu_ps(out + i, lanes, _mm512_add_ps(scaled, gumbel(key, low, high)));
  }
}

}  // namespace drafthorse::avx512
