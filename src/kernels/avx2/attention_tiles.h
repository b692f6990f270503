#pragma once

#include <utility>

#include "kernels/attention_plan.h"
#include "kernels/avx2/functions.h"

/// Attention's work on tiles and rows, written once for both types of cache. A `Cache` says how a 32-bit word of a tile
/// is multiplied:
///   kElements          elements in a word: dimensions of a key word, positions of a value word
///   element<e>(words)  element e of eight tile words, as float32
///   rounded(x)         x as the cache's type holds it
/// All of it is local to the including file.
namespace drafthorse::avx2 {
namespace {

#define DRAFTHORSE_INLINE inline __attribute__((always_inline))

constexpr Index kTilePositions = 32;
/// Bytes between the words of a key tile that hold the next dimensions.
constexpr Index kKeyStep = 4 * kTilePositions;
/// Rows of a register block: sixteen registers hold no more.
constexpr int kBlockRows = 4;
/// Distance of the rows of the scratch buffers in words; the odd line keeps them out of each other's cache sets.
constexpr Index kQueryStride = kMaxHeadDim + 16;
constexpr Index kWeightStride = kAttentionChunk + 16;

struct AttentionScratch {
  alignas(32) float query[kAttentionRows * kQueryStride];
  alignas(32) float weight[kAttentionRows * kWeightStride];
};

template <int kValue>
struct Constant {
  static constexpr int value = kValue;
};

/// f(Constant<0>), f(Constant<1>), .. in order. Arrays indexed this way stay in registers.
template <typename F, int... kIndex>
DRAFTHORSE_INLINE void unroll_sequence(F f, std::integer_sequence<int, kIndex...>) {
  (f(Constant<kIndex>{}), ...);
}
template <int kCount, typename F>
DRAFTHORSE_INLINE void unroll(F f) {
  unroll_sequence(f, std::make_integer_sequence<int, kCount>{});
}

/// Key vectors (of eight positions), and value vectors (of eight dimensions), walked together.
constexpr int key_vectors(int rows) { return rows <= 2 ? 4 : 2; }
constexpr int value_vectors(int rows) { return rows <= 2 ? 4 : 2; }

DRAFTHORSE_INLINE __m256i load_words(const std::byte* words) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words));
}

/// sums[r][v] += the elements of word v x the factors of row r, ascending elements. Words are loaded anew for each
/// element: sixteen registers hold eight sums and little else.
template <typename Cache, int kRows, int kVectors>
DRAFTHORSE_INLINE void multiply_words(const std::byte* words, const float* factors, Index stride, __m256* sums) {
  unroll<Cache::kElements>([&](auto e) __attribute__((always_inline)) {
    __m256 element[kVectors];
    unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
      element[v.value] = Cache::template element<e.value>(load_words(words + v.value * 32));
    });
    unroll<kRows>([&](auto r) __attribute__((always_inline)) {
      const __m256 factor = _mm256_broadcast_ss(factors + r.value * stride + e.value);
      unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
        __m256& sum = sums[r.value * kVectors + v.value];
        sum = _mm256_fmadd_ps(element[v.value], factor, sum);
      });
    });
    asm volatile("" ::: "memory");  // keeps later loads where they are: hoisted, they spill the sums
  });
}

/// Scores of kRows rows for kVectors x 8 positions: lane = position, one running sum over ascending dimensions.
/// `ahead`: bytes to the tile to fetch on the way.
template <typename Cache, int kRows, int kVectors>
DRAFTHORSE_INLINE void vector_scores(const std::byte* tile, Index ahead, Index head_dim, const float* query,
                                     float* out) {
  __m256 sums[kRows * kVectors];
  unroll<kRows * kVectors>([&](auto i) __attribute__((always_inline)) { sums[i.value] = _mm256_setzero_ps(); });
  const Index steps = head_dim / Cache::kElements;
  for (Index step = 0; step < steps; ++step) {
    _mm_prefetch(tile + ahead + step * kKeyStep, _MM_HINT_T1);
    if constexpr (kVectors == 4) _mm_prefetch(tile + ahead + step * kKeyStep + 64, _MM_HINT_T1);
    multiply_words<Cache, kRows, kVectors>(tile + step * kKeyStep, query + step * Cache::kElements, kQueryStride, sums);
  }
  unroll<kRows>([&](auto r) __attribute__((always_inline)) {
    unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
      _mm256_store_ps(out + r.value * kWeightStride + v.value * kLanes, sums[r.value * kVectors + v.value]);
    });
  });
}

/// Scores of one block for the tiles [first, last).
template <typename Cache, int kRows>
void scores(const std::byte* const* key_tiles, Index first, Index last, Index head_dim, const float* query,
            float* weight) {
  constexpr int kVectors = key_vectors(kRows);
  for (Index tile = first; tile < last; ++tile) {
    const Index ahead = key_tiles[tile + 1] - key_tiles[tile];
    for (Index p = 0; p < kTilePositions; p += kVectors * kLanes) {
      vector_scores<Cache, kRows, kVectors>(key_tiles[tile] + p * 4, ahead, head_dim, query,
                                            weight + tile * kTilePositions + p);
    }
  }
}

/// All ones in the lanes of positions [position, position + 8) that lie in [begin, end).
DRAFTHORSE_INLINE __m256 visible(Index position, Index begin, Index end) {
  const __m256i lane =
      _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(position)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  const __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(begin)), lane);
  const __m256i inside = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(end)), lane);
  return from_bits(_mm256_andnot_si256(before, inside));
}

struct RowStats {
  float max;
  float sum;
};

/// Turns a row's scores into weights, in place. Whole tiles are written, 0 outside [begin, end); what the invisible
/// scores are does not matter, they never leave their lanes.
template <typename Cache>
RowStats weights(float* row, Index begin, Index end, float softcap) {
  const __m256 none = splat(-__builtin_inff());
  if (begin == end) return {-__builtin_inff(), 0.0f};
  const Index first = begin / kTilePositions * kTilePositions;
  __m256 best = none;
  for (Index p = first; p < end; p += kLanes) {
    __m256 score = _mm256_load_ps(row + p);
    if (softcap != 0.0f) {
      score = _mm256_mul_ps(splat(softcap), tanh(_mm256_div_ps(score, splat(softcap))));
      _mm256_store_ps(row + p, score);
    }
    best = _mm256_max_ps(_mm256_blendv_ps(none, score, visible(p, begin, end)), best);
  }
  const float max = largest_lane(best) + 0.0f;
  __m256 low_sums = _mm256_setzero_ps();
  __m256 high_sums = _mm256_setzero_ps();
  const auto weight = [&](Index p) {
    const __m256 w = Cache::rounded(exp(_mm256_sub_ps(_mm256_load_ps(row + p), splat(max))));
    const __m256 seen = _mm256_and_ps(w, visible(p, begin, end));
    _mm256_store_ps(row + p, seen);
    return seen;
  };
  for (Index p = first; p < end; p += 2 * kLanes) {
    low_sums = _mm256_add_ps(low_sums, weight(p));
    high_sums = _mm256_add_ps(high_sums, weight(p + kLanes));
  }
  return {max, sum_of_lanes(low_sums, high_sums)};
}

/// Adds weight x value of the word rows [first, last) of a value tile to kVectors x 8 dimensions of kRows output rows.
template <typename Cache, int kRows, int kVectors>
DRAFTHORSE_INLINE void vector_values(const std::byte* tile, Index ahead, Index first, Index last, Index head_dim,
                                     const float* weight, float* out) {
  __m256 sums[kRows * kVectors];
  unroll<kRows>([&](auto r) __attribute__((always_inline)) {
    unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
      sums[r.value * kVectors + v.value] = _mm256_loadu_ps(out + r.value * head_dim + v.value * kLanes);
    });
  });
  for (Index step = first; step < last; ++step) {
    _mm_prefetch(tile + ahead + step * head_dim * 4, _MM_HINT_T1);
    if constexpr (kVectors == 4) _mm_prefetch(tile + ahead + step * head_dim * 4 + 64, _MM_HINT_T1);
    multiply_words<Cache, kRows, kVectors>(tile + step * head_dim * 4, weight + step * Cache::kElements, kWeightStride,
                                           sums);
  }
  unroll<kRows>([&](auto r) __attribute__((always_inline)) {
    unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
      _mm256_storeu_ps(out + r.value * head_dim + v.value * kLanes, sums[r.value * kVectors + v.value]);
    });
  });
}

/// Dimensions [d, head_dim) of `vector_values`, as many vectors at a time as fit; returns the first dimension left.
template <typename Cache, int kRows, int kVectors>
DRAFTHORSE_INLINE Index whole_vectors(const std::byte* tile, Index ahead, Index first, Index last, Index d,
                                      Index head_dim, const float* weight, float* out) {
  for (; d + kVectors * kLanes <= head_dim; d += kVectors * kLanes) {
    vector_values<Cache, kRows, kVectors>(tile + d * 4, ahead, first, last, head_dim, weight, out + d);
  }
  if constexpr (kVectors > 1) {
    return whole_vectors<Cache, kRows, kVectors / 2>(tile, ahead, first, last, d, head_dim, weight, out);
  }
  return d;
}

/// Dimensions [d, d + 8) of one row, up to head_dim, for positions [begin, end) of a value tile, one by one: of a half
/// visible pair the other position is never used.
template <typename Cache>
DRAFTHORSE_INLINE void row_values(const std::byte* tile, Index begin, Index end, Index d, Index head_dim,
                                  const float* weight, float* out) {
  __m256 sum = load_some(out, d, head_dim);
  for (Index p = begin; p < end; ++p) {
    const auto words = reinterpret_cast<const float*>(tile + p / Cache::kElements * head_dim * 4);
    const __m256i raw = bits_of(load_some(words, d, head_dim));
    const bool last = p % Cache::kElements == Cache::kElements - 1;
    const __m256 value = last ? Cache::template element<Cache::kElements - 1>(raw) : Cache::template element<0>(raw);
    sum = _mm256_fmadd_ps(value, splat(weight[p]), sum);
  }
  store_some(out, d, head_dim, sum);
}

/// Adds the values of positions [begin, end) of a tile, all seen by every row of the block and whole pairs.
template <typename Cache, int kRows>
void values(const std::byte* tile, Index ahead, Index begin, Index end, Index head_dim, const float* weight,
            float* out) {
  const Index d = whole_vectors<Cache, kRows, value_vectors(kRows)>(tile, ahead, begin / Cache::kElements,
                                                                    end / Cache::kElements, 0, head_dim, weight, out);
  if (d == head_dim) return;
  for (int r = 0; r < kRows; ++r) {
    row_values<Cache>(tile, begin, end, d, head_dim, weight + r * kWeightStride, out + r * head_dim);
  }
}

}  // namespace
}  // namespace drafthorse::avx2
