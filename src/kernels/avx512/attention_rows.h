#pragma once

#include "kernels/attention_plan.h"
#include "kernels/avx512/attention_tiles.h"
#include "kernels/avx512/functions.h"

/// How the rows of a task walk a chunk. Local to the including file.
namespace drafthorse::avx512 {
namespace {

/// A chunk for the rows of one plan.
template <typename Cache>
class ChunkRows {
 public:
  ChunkRows(const AttentionTask& task, const AttentionPlan& plan, Index first_row, AttentionScratch& scratch)
      : task_(task),
        plan_(plan),
        first_row_(first_row),
        scratch_(scratch),
        out_(task.out + first_row * task.head_dim) {}

  void attend() {
    for (int i = 0; i < plan_.rows; ++i) {
      const Index row = first_row_ + i;
      const float* q = task_.q + row / task_.group * task_.q_stride + row % task_.group * task_.head_dim;
      Cache::store_query(q, task_.scale, task_.head_dim, scratch_.query + i * kQueryStride);
    }
    all_scores();
    for (int i = 0; i < plan_.rows; ++i) {
      const RowStats stats =
          weights<Cache>(scratch_.weight + i * kWeightStride, plan_.begin[i], plan_.end[i], task_.softcap);
      task_.max[first_row_ + i] = stats.max;
      task_.sum[first_row_ + i] = stats.sum;
    }
    all_values();
  }

 private:
  using Scores = void (*)(const std::byte* const*, Index, Index, Index, const float*, float*);
  using Values = void (*)(const std::byte*, Index, Index, Index, Index, const float*, float*);
  static constexpr Scores kScores[kBlockRows] = {scores<Cache, 1>, scores<Cache, 2>, scores<Cache, 3>,
                                                 scores<Cache, 4>, scores<Cache, 5>, scores<Cache, 6>,
                                                 scores<Cache, 7>, scores<Cache, 8>};
  static constexpr Values kValues[kBlockRows] = {values<Cache, 1>, values<Cache, 2>, values<Cache, 3>,
                                                 values<Cache, 4>, values<Cache, 5>, values<Cache, 6>,
                                                 values<Cache, 7>, values<Cache, 8>};

  /// Tile by tile through all blocks, so that memory is read at the pace of the arithmetic; one block alone walks
  /// several tiles.
  void all_scores() {
    const Index step = plan_.block_count == 1 ? plan_.last_tile : 1;
    for (Index tile = plan_.first_tile; tile < plan_.last_tile; tile += step) {
      const Index last = tile + step < plan_.last_tile ? tile + step : plan_.last_tile;
      for (int b = 0; b < plan_.block_count; ++b) {
        const AttentionPlan::Block& block = plan_.blocks[b];
        kScores[block.rows - 1](plan_.key_tiles, tile, last, task_.head_dim,
                                scratch_.query + block.first * kQueryStride,
                                scratch_.weight + block.first * kWeightStride);
      }
    }
  }

  /// Ascending positions for every row: keys that only some rows of a block see go row by row, before and after the
  /// common ones.
  void all_values() {
    for (Index i = 0; i < plan_.rows * task_.head_dim; i += kLanes) {
      _mm512_mask_storeu_ps(out_ + i, lanes_left(i, plan_.rows * task_.head_dim), _mm512_setzero_ps());
    }
    for (int b = 0; b < plan_.block_count; ++b) {
      const AttentionPlan::Block& block = plan_.blocks[b];
      const bool shared = block.common_begin < block.common_end;
      for (int i = block.first; i < block.first + block.rows; ++i) {
        values_alone(i, plan_.begin[i], shared ? block.common_begin : plan_.end[i]);
      }
    }
    for (Index tile = plan_.first_tile; tile < plan_.last_tile; ++tile) {
      for (int b = 0; b < plan_.block_count; ++b) common_values(plan_.blocks[b], tile);
    }
    for (int b = 0; b < plan_.block_count; ++b) {
      const AttentionPlan::Block& block = plan_.blocks[b];
      if (block.common_begin == block.common_end) continue;
      for (int i = block.first; i < block.first + block.rows; ++i) values_alone(i, block.common_end, plan_.end[i]);
    }
  }

  void common_values(const AttentionPlan::Block& block, Index tile) {
    const Index start = tile * kTilePositions;
    const Index begin = block.common_begin > start ? block.common_begin - start : 0;
    const Index end = block.common_end < start + kTilePositions ? block.common_end - start : kTilePositions;
    if (begin >= end) return;
    const Index next = tile + tiles_ahead(block.rows);
    const Index ahead = next < plan_.last_tile ? plan_.key_tiles[next] - plan_.key_tiles[tile] : 0;
    kValues[block.rows - 1](value_tile(tile), ahead, begin, end, task_.head_dim, weight(block.first, tile),
                            out_ + block.first * task_.head_dim);
  }

  void values_alone(int row, Index begin, Index end) {
    for (Index p = begin; p < end;) {
      const Index tile = p / kTilePositions;
      const Index start = tile * kTilePositions;
      const Index next = start + kTilePositions < end ? start + kTilePositions : end;
      for (Index d = 0; d < task_.head_dim; d += kLanes) {
        row_values<Cache>(value_tile(tile), p - start, next - start, d, task_.head_dim, weight(row, tile),
                          out_ + row * task_.head_dim);
      }
      p = next;
    }
  }

  const std::byte* value_tile(Index tile) const { return plan_.key_tiles[tile] + task_.value_offset; }
  const float* weight(int row, Index tile) const {
    return scratch_.weight + row * kWeightStride + tile * kTilePositions / Cache::kElements * Cache::kFactors;
  }

  const AttentionTask& task_;
  const AttentionPlan& plan_;
  const Index first_row_;
  AttentionScratch& scratch_;
  float* const out_;
};

template <typename Cache>
void attend(const AttentionTask& task) {
  AttentionScratch scratch;
  for (Index row = 0; row < task.queries * task.group;) {
    const AttentionPlan plan = attention_plan(task, row, kBlockRows);
    ChunkRows<Cache>(task, plan, row, scratch).attend();
    row += plan.rows;
  }
}

}  // namespace
}  // namespace drafthorse::avx512
