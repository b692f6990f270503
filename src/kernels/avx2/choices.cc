#include "kernels/avx2/choices.h"

#include "kernels/avx2/functions.h"
#include "kernels/noise_key.h"

namespace drafthorse::avx2 {
namespace {

constexpr float kInfinity = __builtin_inff();
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

/// The largest value, NaN passed over; -infinity when there is none.
float largest(const float* x, Index n) {
  constexpr int kStreams = 4;
  const __m256 none = splat(-kInfinity);
  __m256 best[kStreams] = {none, none, none, none};
  Index i = 0;
  for (; i + kStreams * kLanes <= n; i += kStreams * kLanes) {
    for (int s = 0; s < kStreams; ++s) best[s] = _mm256_max_ps(_mm256_loadu_ps(x + i + s * kLanes), best[s]);
  }
  float result = largest_lane(_mm256_max_ps(_mm256_max_ps(best[0], best[1]), _mm256_max_ps(best[2], best[3])));
  for (; i < n; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

inline __m256i splat64(std::uint64_t x) { return _mm256_set1_epi64x(static_cast<long long>(x)); }

/// The low 64 bits of a * b, from 32-bit products.
inline __m256i multiplied(__m256i a, std::uint64_t b) {
  const __m256i factor = splat64(b);
  const __m256i crossed = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(a, 32), factor),
                                           _mm256_mul_epu32(a, _mm256_srli_epi64(factor, 32)));
  return _mm256_add_epi64(_mm256_mul_epu32(a, factor), _mm256_slli_epi64(crossed, 32));
}

/// mix64 of base/random.h.
inline __m256i mix64(__m256i z) {
  z = multiplied(_mm256_xor_si256(z, _mm256_srli_epi64(z, 30)), 0xbf58476d1ce4e5b9u);
  z = multiplied(_mm256_xor_si256(z, _mm256_srli_epi64(z, 27)), 0x94d049bb133111ebu);
  return _mm256_xor_si256(z, _mm256_srli_epi64(z, 31));
}

/// The low words of eight 64-bit lanes.
inline __m256i low_words(__m256i a, __m256i b) {
  const __m256 mixed = _mm256_shuffle_ps(from_bits(a), from_bits(b), 0x88);  // a0 a1 b0 b1 a2 a3 b2 b3
  return _mm256_permute4x64_epi64(bits_of(mixed), 0xd8);
}

/// The bits of v = 1 - u from 64 random bits, see scalar/choices.cc. A conversion to double (2^52 + upper, less 2^52)
/// counts the leading zeros.
inline __m256i uniform_bits(__m256i random) {
  const __m256i upper = _mm256_or_si256(_mm256_srli_epi64(random, 23), splat64(1));
  const __m256d magic = _mm256_set1_pd(0x1p52);
  const __m256d number = _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(upper, _mm256_castpd_si256(magic))), magic);
  const __m256i binade = _mm256_srli_epi64(_mm256_castpd_si256(number), 52);
  const __m256i exponent = _mm256_sub_epi64(binade, splat64(1023 - 86));
  return _mm256_or_si256(_mm256_slli_epi64(exponent, 23), _mm256_and_si256(random, splat64(0x7fffff)));
}

/// Gumbel noise of the ids `low` and `high`, as 64-bit words.
inline __m256 gumbel(std::uint64_t key, __m256i low, __m256i high) {
  const __m256i start = splat64(key + kGolden);
  const __m256i a = uniform_bits(mix64(_mm256_add_epi64(start, multiplied(low, kGolden))));
  const __m256i b = uniform_bits(mix64(_mm256_add_epi64(start, multiplied(high, kGolden))));
  return negated(log(negated(log1p(negated(from_bits(low_words(a, b)))))));
}

inline __m256i four_from(Index first) {
  return _mm256_add_epi64(_mm256_set1_epi64x(first), _mm256_setr_epi64x(0, 1, 2, 3));
}

/// Four 32-bit words, widened with zeros.
inline __m256i low_wide(__m256i x) { return _mm256_cvtepu32_epi64(_mm256_castsi256_si128(x)); }
inline __m256i high_wide(__m256i x) { return _mm256_cvtepu32_epi64(_mm256_extracti128_si256(x, 1)); }

/// e^((x - best) / temperature) of elements [i, n), 0 for -infinity and for absent lanes.
inline __m256 weight(const float* x, Index i, Index n, __m256 best, __m256 temperature) {
  const __m256 v = load_some(x, i, n);
  const __m256 present = _mm256_and_ps(_mm256_cmp_ps(v, splat(-kInfinity), _CMP_NEQ_UQ), from_bits(lanes_left(i, n)));
  return _mm256_and_ps(exp(_mm256_div_ps(_mm256_sub_ps(v, best), temperature)), present);
}

}  // namespace

std::int64_t argmax(const float* x, std::int64_t n) {
  const float best = largest(x, n);
  Index i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const int equal = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x + i), splat(best), _CMP_EQ_OQ));
    if (equal != 0) return i + __builtin_ctz(static_cast<unsigned>(equal));
  }
  for (; i < n; ++i) {
    if (x[i] == best) return i;
  }
  return 0;  // nothing but NaN
}

std::uint64_t logits_hash(const float* x, std::int64_t first_id, std::int64_t n) {
  const __m256i golden = splat64(kGolden);
  __m256i sum = _mm256_setzero_si256();
  for (Index i = 0; i < n; i += kLanes) {
    const __m256i lanes = lanes_left(i, n);
    const __m256i bits = bits_of(load_some(x, i, n));
    const __m256i low = _mm256_or_si256(_mm256_slli_epi64(four_from(first_id + i), 32), low_wide(bits));
    const __m256i high = _mm256_or_si256(_mm256_slli_epi64(four_from(first_id + i + 4), 32), high_wide(bits));
    const __m256i low_present = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(lanes));
    const __m256i high_present = _mm256_cvtepi32_epi64(_mm256_extracti128_si256(lanes, 1));
    sum = _mm256_add_epi64(sum, _mm256_and_si256(mix64(_mm256_add_epi64(low, golden)), low_present));
    sum = _mm256_add_epi64(sum, _mm256_and_si256(mix64(_mm256_add_epi64(high, golden)), high_present));
  }
  const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  return static_cast<std::uint64_t>(_mm_extract_epi64(two, 0)) + static_cast<std::uint64_t>(_mm_extract_epi64(two, 1));
}

void softmax(const float* x, float temperature, float* out, std::int64_t n) {
  const __m256 best = splat(largest(x, n));
  __m256 lanes_sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (Index i = 0; i < n; i += kLanes) {
    const __m256 e = weight(x, i, n, best, splat(temperature));
    __m256& lane = lanes_sum[i / kLanes % 2];
    lane = _mm256_add_ps(lane, e);
    store_some(out, i, n, e);
  }
  const float sum = sum_of_lanes(lanes_sum[0], lanes_sum[1]);
  if (sum == 0.0f) return;  // nothing but -infinity
  for (Index i = 0; i < n; i += kLanes) store_some(out, i, n, _mm256_div_ps(load_some(out, i, n), splat(sum)));
}

float log_sum_exp(const float* x, std::int64_t n) {
  const float best = largest(x, n);
  __m256 lanes_sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (Index i = 0; i < n; i += kLanes) {
    __m256& lane = lanes_sum[i / kLanes % 2];
    lane = _mm256_add_ps(lane, weight(x, i, n, splat(best), splat(1.0f)));
  }
  const float sum = sum_of_lanes(lanes_sum[0], lanes_sum[1]);
  return sum == 0.0f ? -kInfinity : best + _mm256_cvtss_f32(log(splat(sum)));
}

void gumbel_scores(const float* z, const std::int32_t* ids, std::int64_t first_id, float temperature,
                   std::uint64_t seed, std::uint64_t position, float* out, std::int64_t n) {
  const std::uint64_t key = noise_key(seed, position);
  for (Index i = 0; i < n; i += kLanes) {
    const __m256i listed = ids != nullptr ? _mm256_maskload_epi32(ids + i, lanes_left(i, n)) : _mm256_setzero_si256();
    const __m256i low = ids != nullptr ? low_wide(listed) : four_from(first_id + i);
    const __m256i high = ids != nullptr ? high_wide(listed) : four_from(first_id + i + 4);
    store_some(out, i, n, _mm256_add_ps(_mm256_div_ps(load_some(z, i, n), splat(temperature)), gumbel(key, low, high)));
  }
}

}  // namespace drafthorse::avx2
