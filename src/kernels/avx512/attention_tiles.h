#pragma once

#include <utility>

#include "kernels/attention_plan.h"
#include "kernels/avx512/functions.h"

/// Attention's work on tiles and rows, written once for the three kinds of cache arithmetic. A `Cache` says how a
/// 32-bit word of a tile is multiplied:
///   kElements                  elements in a word: dimensions of a key word, positions of a value word
///   kFactors                   words of queries or weights that meet one tile word
///   split(raw)                 sixteen tile words made ready
///   add(sums, split, factors)  sums + split x factors, in the contract's order
///   add_half(sums, raw, factors, odd)  the same for one position of a value pair; the other position is never used
///   store_query(q, scale, head_dim, out)
///   store_weights(low, high, sums, out)  the weights of 32 positions; returns `sums` with the weights added, as they
///   are stored
/// All of it is local to the including file.
namespace drafthorse::avx512 {
namespace {

#define DRAFTHORSE_INLINE inline __attribute__((always_inline))

constexpr Index kTilePositions = 32;
/// Bytes between the words of a key tile that hold the next dimensions.
constexpr Index kKeyStep = 4 * kTilePositions;
/// Distance of the rows of the scratch buffers in words; the odd line keeps them out of each other's cache sets.
constexpr Index kQueryStride = kMaxHeadDim + 16;
constexpr Index kWeightStride = kAttentionChunk + 16;

struct AttentionScratch {
  alignas(64) float query[kAttentionRows * kQueryStride];
  alignas(64) float weight[kAttentionRows * kWeightStride];
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

/// Rows of a register block.
constexpr int kBlockRows = 8;

/// Tiles whose keys are walked together: few rows leave too few sums to hide the latency of a multiply-add.
constexpr int tiles_together(int rows) { return rows <= 2 ? 4 : rows <= 4 ? 2 : 1; }
/// Vectors of values walked together, for the same reason.
constexpr int vectors_together(int rows) { return rows <= 2 ? 8 : rows <= 4 ? 4 : 2; }

/// How many tiles ahead memory is fetched, to the second-level cache: further than the hardware looks, since the tiles
/// of one head lie apart.
constexpr int tiles_ahead(int rows) { return rows <= 4 ? 4 : 2; }

/// Scores of kRows rows for kTiles tiles: lane = position, one running sum over ascending dimensions. On the way it
/// fetches the kTiles tiles after them.
template <typename Cache, int kRows, int kTiles>
DRAFTHORSE_INLINE void tile_scores(const std::byte* const* tiles, Index head_dim, const float* query, float* out) {
  __m512 sums[kTiles * kRows * 2];
  unroll<kTiles * kRows * 2>([&](auto i) __attribute__((always_inline)) { sums[i.value] = _mm512_setzero_ps(); });
  const Index steps = head_dim / Cache::kElements;
  for (Index step = 0; step < steps; ++step) {
    unroll<kTiles>([&](auto t) __attribute__((always_inline)) {
      const std::byte* words = tiles[t.value] + step * kKeyStep;
      const auto low = Cache::split(_mm512_load_si512(words));
      const auto high = Cache::split(_mm512_load_si512(words + 64));
      const std::byte* ahead = tiles[tiles_ahead(kRows) + t.value] + step * kKeyStep;
      _mm_prefetch(ahead, _MM_HINT_T1);
      _mm_prefetch(ahead + 64, _MM_HINT_T1);
      unroll<kRows>([&](auto r) __attribute__((always_inline)) {
        const float* factors = query + r.value * kQueryStride + step * Cache::kFactors;
        constexpr int kSum = (t.value * kRows + r.value) * 2;
        sums[kSum] = Cache::add(sums[kSum], low, factors);
        sums[kSum + 1] = Cache::add(sums[kSum + 1], high, factors);
      });
    });
    asm volatile("" ::: "memory");  // keeps the loads of later steps where they are: hoisted, they spill the sums
  }
  unroll<kTiles>([&](auto t) __attribute__((always_inline)) {
    unroll<kRows>([&](auto r) __attribute__((always_inline)) {
      constexpr int kSum = (t.value * kRows + r.value) * 2;
      float* row = out + r.value * kWeightStride + t.value * kTilePositions;
      _mm512_store_ps(row, sums[kSum]);
      _mm512_store_ps(row + kLanes, sums[kSum + 1]);
    });
  });
}

/// Scores of one block for the tiles [first, last).
template <typename Cache, int kRows>
void scores(const std::byte* const* key_tiles, Index first, Index last, Index head_dim, const float* query,
            float* weight) {
  constexpr int kTogether = tiles_together(kRows);
  Index tile = first;
  for (; tile + kTogether <= last; tile += kTogether) {
    tile_scores<Cache, kRows, kTogether>(key_tiles + tile, head_dim, query, weight + tile * kTilePositions);
  }
  for (; tile < last; ++tile) {
    tile_scores<Cache, kRows, 1>(key_tiles + tile, head_dim, query, weight + tile * kTilePositions);
  }
}

/// The lanes of positions [position, position + 16) that lie in [begin, end).
DRAFTHORSE_INLINE __mmask16 visible(Index position, Index begin, Index end) {
  const __m512i lane = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(position)),
                                        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  const __mmask16 from = _mm512_cmpge_epi32_mask(lane, _mm512_set1_epi32(static_cast<int>(begin)));
  return _mm512_mask_cmplt_epi32_mask(from, lane, _mm512_set1_epi32(static_cast<int>(end)));
}

struct RowStats {
  float max;
  float sum;
};

/// Turns a row's scores into weights, in place. Whole tiles are written, 0 outside [begin, end); what the invisible
/// scores are does not matter, they never leave their lanes.
template <typename Cache>
RowStats weights(float* row, Index begin, Index end, float softcap) {
  const __m512 none = splat(-__builtin_inff());
  if (begin == end) return {-__builtin_inff(), 0.0f};
  const Index first = begin / kTilePositions * kTilePositions;
  __m512 best = none;
  for (Index p = first; p < end; p += kLanes) {
    __m512 score = _mm512_load_ps(row + p);
    if (softcap != 0.0f) {
      score = _mm512_mul_ps(splat(softcap), tanh(_mm512_div_ps(score, splat(softcap))));
      _mm512_store_ps(row + p, score);
    }
    best = _mm512_max_ps(_mm512_mask_mov_ps(none, visible(p, begin, end), score), best);
  }
  const float max = _mm512_reduce_max_ps(best) + 0.0f;
  __m512 sums = _mm512_setzero_ps();
  for (Index p = first; p < end; p += kTilePositions) {
    const __m512 low = exp(_mm512_sub_ps(_mm512_load_ps(row + p), splat(max)));
    const __m512 high = exp(_mm512_sub_ps(_mm512_load_ps(row + p + kLanes), splat(max)));
    sums = Cache::store_weights(_mm512_maskz_mov_ps(visible(p, begin, end), low),
                                _mm512_maskz_mov_ps(visible(p + kLanes, begin, end), high), sums,
                                row + p / Cache::kElements * Cache::kFactors);
  }
  return {max, sum_of_lanes(sums)};
}

/// Adds weight x value of the word rows [first, last) of a value tile to kVectors x 16 dimensions of kRows output rows.
/// `ahead`: bytes to the tile to fetch on the way.
template <typename Cache, int kRows, int kVectors>
DRAFTHORSE_INLINE void vector_values(const std::byte* tile, Index ahead, Index first, Index last, Index head_dim,
                                     const float* weight, float* out) {
  __m512 sums[kRows * kVectors];
  unroll<kRows>([&](auto r) __attribute__((always_inline)) {
    unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
      sums[r.value * kVectors + v.value] = _mm512_loadu_ps(out + r.value * head_dim + v.value * kLanes);
    });
  });
  for (Index step = first; step < last; ++step) {
    const std::byte* words = tile + step * head_dim * 4;
    unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
      const auto value = Cache::split(_mm512_loadu_si512(words + v.value * 64));
      _mm_prefetch(words + ahead + v.value * 64, _MM_HINT_T1);
      unroll<kRows>([&](auto r) __attribute__((always_inline)) {
        __m512& sum = sums[r.value * kVectors + v.value];
        sum = Cache::add(sum, value, weight + r.value * kWeightStride + step * Cache::kFactors);
      });
    });
    asm volatile("" ::: "memory");
  }
  unroll<kRows>([&](auto r) __attribute__((always_inline)) {
    unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
      _mm512_storeu_ps(out + r.value * head_dim + v.value * kLanes, sums[r.value * kVectors + v.value]);
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

/// Dimensions [d, d + 16) of one row, up to head_dim, for positions [begin, end) of a value tile, whole pairs or not.
template <typename Cache>
DRAFTHORSE_INLINE void row_values(const std::byte* tile, Index begin, Index end, Index d, Index head_dim,
                                  const float* weight, float* out) {
  const __mmask16 lanes = lanes_left(d, head_dim);
  __m512 sum = _mm512_maskz_loadu_ps(lanes, out + d);
  for (Index p = begin; p < end;) {
    const Index step = p / Cache::kElements;
    const __m512i raw = _mm512_maskz_loadu_epi32(lanes, tile + (step * head_dim + d) * 4);
    const float* factors = weight + step * Cache::kFactors;
    const Index next = (step + 1) * Cache::kElements;
    const bool whole = p == step * Cache::kElements && next <= end;
    sum = whole ? Cache::add(sum, Cache::split(raw), factors) : Cache::add_half(sum, raw, factors, p % 2 != 0);
    p = next;
  }
  _mm512_mask_storeu_ps(out + d, lanes, sum);
}

/// Adds the values of positions [begin, end) of a tile, all seen by every row of the block and whole pairs.
template <typename Cache, int kRows>
void values(const std::byte* tile, Index ahead, Index begin, Index end, Index head_dim, const float* weight,
            float* out) {
  const Index d = whole_vectors<Cache, kRows, vectors_together(kRows)>(
      tile, ahead, begin / Cache::kElements, end / Cache::kElements, 0, head_dim, weight, out);
  if (d == head_dim) return;
  for (int r = 0; r < kRows; ++r) {
    row_values<Cache>(tile, begin, end, d, head_dim, weight + r * kWeightStride, out + r * head_dim);
  }
}

}  // namespace
}  // namespace drafthorse::avx512
