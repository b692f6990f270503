#include "kernels/attention_plan.h"

#include <algorithm>

#include "tensor/kv_layout.h"

namespace drafthorse {
namespace {

static_assert(kKvTile == 32);

/// The part of a row's visible range that lies in the chunk.
void place_row(const AttentionTask& task, std::int64_t row, std::int64_t& begin, std::int64_t& end) {
  const std::int64_t query = row / task.group;
  begin = std::max(task.visible_begin[query], task.chunk_begin) - task.chunk_begin;
  end = std::min(task.visible_end[query], task.chunk_end) - task.chunk_begin;
  if (begin >= end) begin = end = 0;
}

void cut_into_blocks(AttentionPlan& plan, int block_rows) {
  plan.block_count = (plan.rows + block_rows - 1) / block_rows;
  int first = 0;
  for (int b = 0; b < plan.block_count; ++b) {
    const int rows = (plan.rows - first) / (plan.block_count - b);
    std::int64_t begin = 0;
    std::int64_t end = kAttentionChunk;
    for (int i = first; i < first + rows; ++i) {
      begin = std::max(begin, (plan.begin[i] + 1) / 2 * 2);
      end = std::min(end, plan.end[i] / 2 * 2);
    }
    if (begin >= end) begin = end = 0;
    plan.blocks[b] = {first, rows, begin, end};
    first += rows;
  }
}

const std::byte* key_tile(const AttentionTask& task, std::int64_t tile) {
  const std::int64_t position = task.chunk_begin + tile * kKvTile;
  const std::int64_t tile_of_page = position % task.page_positions / kKvTile;
  return task.pages[position / task.page_positions] + static_cast<std::size_t>(tile_of_page) * task.tile_stride +
         task.head_offset;
}

}  // namespace

AttentionPlan attention_plan(const AttentionTask& task, std::int64_t first_row, int block_rows) {
  AttentionPlan plan;
  plan.rows = static_cast<int>(std::min<std::int64_t>(kAttentionRows, task.queries * task.group - first_row));
  std::int64_t first = kAttentionChunk;
  std::int64_t last = 0;
  for (int i = 0; i < plan.rows; ++i) {
    place_row(task, first_row + i, plan.begin[i], plan.end[i]);
    if (plan.begin[i] == plan.end[i]) continue;
    first = std::min(first, plan.begin[i]);
    last = std::max(last, plan.end[i]);
  }
  cut_into_blocks(plan, block_rows);
  plan.first_tile = first < last ? first / kKvTile : 0;
  plan.last_tile = first < last ? (last + kKvTile - 1) / kKvTile : 0;
  for (std::int64_t tile = plan.first_tile; tile < plan.last_tile; ++tile) plan.key_tiles[tile] = key_tile(task, tile);
  for (std::int64_t i = 0; i < 4 && first < last; ++i) {
    const std::int64_t tile = std::min(plan.first_tile + i, plan.last_tile - 1);
    plan.key_tiles[plan.last_tile + i] = plan.key_tiles[tile] + task.value_offset;
  }
  return plan;
}

}  // namespace drafthorse
