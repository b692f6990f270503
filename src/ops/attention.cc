#include "ops/attention.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/kernel_table.h"

namespace drafthorse {
namespace {

// Query rows x heads per kv head of one block: enough to use a key tile many times, few enough that scores stay in the
// near caches.
constexpr std::int64_t kBlockRows = 64;
// Fewer (block, kv head) pairs than this per thread, and chunks become tasks of their own.
constexpr std::int64_t kTasksPerThread = 3;

std::int64_t queries_per_block(std::int64_t group) { return std::max<std::int64_t>(1, kBlockRows / group); }

}  // namespace

AttentionPlan::AttentionPlan(const AttentionShape& shape, std::span<const QueryRun> runs,
                             const std::int64_t* visible_begin, const std::int64_t* visible_end, Arena& scratch,
                             const ExecContext& exec)
    : shape_(shape), visible_begin_(visible_begin), visible_end_(visible_end) {
  const KvLayout& layout = shape.layout;
  DRAFTHORSE_CHECK(layout.kv_heads >= 1 && shape.heads % layout.kv_heads == 0,
                   shape.heads << " heads, " << layout.kv_heads << " kv heads");
  const std::int64_t queries = queries_per_block(group());
  std::int64_t count = 0;
  for (const QueryRun& run : runs) count += (run.rows + queries - 1) / queries;
  blocks_ = scratch.array<Block>(static_cast<std::size_t>(count));
  std::int64_t most_chunks = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const QueryRun& run = runs[i];
    for (std::int64_t done = 0; done < run.rows; done += queries) {
      Block& block = blocks_[block_count_++];
      block.run = static_cast<std::int64_t>(i);
      block.first_row = run.first_row + done;
      block.rows = std::min(queries, run.rows - done);
      const auto rows = static_cast<std::size_t>(block.rows);
      const std::span<const std::int64_t> begins(visible_begin + block.first_row, rows);
      const std::span<const std::int64_t> ends(visible_end + block.first_row, rows);
      for (std::size_t r = 0; r < rows; ++r)
        DRAFTHORSE_CHECK(begins[r] < ends[r], "row " << block.first_row << " + " << r << " sees nothing");
      block.visible_end = *std::max_element(ends.begin(), ends.end());
      block.first_chunk = *std::min_element(begins.begin(), begins.end()) / kAttentionChunk;
      block.chunks = (block.visible_end + kAttentionChunk - 1) / kAttentionChunk - block.first_chunk;
      block.first_item = items_;
      items_ += layout.kv_heads * block.chunks;
      most_chunks = std::max(most_chunks, block.chunks);
      block_rows_ = std::max(block_rows_, block.rows * group());
    }
  }
  const std::int64_t threads = exec.pool.threads();
  split_chunks_ = most_chunks > 1 && block_count_ * layout.kv_heads < kTasksPerThread * threads;
  slots_per_thread_ = most_chunks;
  const auto rows = static_cast<std::size_t>((split_chunks_ ? items_ : threads * most_chunks) * block_rows_);
  values_ = scratch.array<float>(rows * static_cast<std::size_t>(layout.head_dim));
  max_ = scratch.array<float>(rows);
  sum_ = scratch.array<float>(rows);
}

AttentionPlan::Partials AttentionPlan::partials(std::int64_t index) const {
  const std::int64_t row = index * block_rows_;
  return {values_ + row * shape_.layout.head_dim, max_ + row, sum_ + row};
}

void AttentionPlan::compute(const Block& block, std::int64_t kv_head, std::int64_t chunk, ConstRows q,
                            const KvPages& pages, const Partials& into, const ExecContext& exec) const {
  const KvLayout& layout = shape_.layout;
  const std::int64_t begin = (block.first_chunk + chunk) * kAttentionChunk;
  exec.kernels.attention({.kv_type = layout.type,
                          .head_dim = layout.head_dim,
                          .pages = pages.pages,
                          .page_positions = pages.page_positions,
                          .tile_stride = layout.tile_bytes(),
                          .head_offset = static_cast<std::size_t>(kv_head) * layout.head_tile_bytes(),
                          .value_offset = layout.key_tile_bytes(),
                          .chunk_begin = begin,
                          .chunk_end = std::min(begin + kAttentionChunk, block.visible_end),
                          .q = q.row(block.first_row) + kv_head * group() * layout.head_dim,
                          .q_stride = q.stride,
                          .queries = block.rows,
                          .group = group(),
                          .visible_begin = visible_begin_ + block.first_row,
                          .visible_end = visible_end_ + block.first_row,
                          .scale = shape_.scale,
                          .softcap = shape_.softcap,
                          .out = into.values,
                          .max = into.max,
                          .sum = into.sum});
}

void AttentionPlan::combine(const Block& block, std::int64_t kv_head, std::int64_t item_stride, const Partials& from,
                            Rows out, const ExecContext& exec) const {
  const std::int64_t dim = shape_.layout.head_dim;
  for (std::int64_t m = 0; m < block.rows; ++m) {
    for (std::int64_t g = 0; g < group(); ++g) {
      const std::int64_t row = m * group() + g;
      exec.kernels.attention_combine({.head_dim = dim,
                                      .chunks = block.chunks,
                                      .partial = from.values + row * dim,
                                      .partial_stride = item_stride * dim,
                                      .max = from.max + row,
                                      .sum = from.sum + row,
                                      .stat_stride = item_stride,
                                      .out = out.row(block.first_row + m) + (kv_head * group() + g) * dim});
    }
  }
}

void AttentionPlan::run(ConstRows q, const KvPages* pages, Rows out, const ExecContext& exec) const {
  const std::int64_t kv_heads = shape_.layout.kv_heads;
  const std::int64_t cols = shape_.heads * shape_.layout.head_dim;
  DRAFTHORSE_CHECK(q.cols == cols && out.cols == cols && q.rows == out.rows,
                   q.cols << " query and " << out.cols << " output columns");
  if (!split_chunks_) {
    exec.pool.parallel_for(block_count_ * kv_heads, [&](std::int64_t task, int thread) {
      const Block& block = blocks_[task / kv_heads];
      const std::int64_t slot = thread * slots_per_thread_;
      for (std::int64_t c = 0; c < block.chunks; ++c) {
        compute(block, task % kv_heads, c, q, pages[block.run], partials(slot + c), exec);
      }
      combine(block, task % kv_heads, block_rows_, partials(slot), out, exec);
    });
    return;
  }
  exec.pool.parallel_for(items_, [&](std::int64_t item, int) {
    const Block* block = blocks_ + block_count_ - 1;
    while (block->first_item > item) --block;
    const std::int64_t inside = item - block->first_item;
    compute(*block, inside / block->chunks, inside % block->chunks, q, pages[block->run], partials(item), exec);
  });
  exec.pool.parallel_for(block_count_ * kv_heads, [&](std::int64_t task, int) {
    const Block& block = blocks_[task / kv_heads];
    combine(block, task % kv_heads, block_rows_, partials(block.first_item + task % kv_heads * block.chunks), out,
            exec);
  });
}

std::size_t AttentionPlan::scratch_bytes(const AttentionShape& shape, std::int64_t rows, std::int64_t positions,
                                         int threads) {
  const std::int64_t shared = shape.heads / shape.layout.kv_heads;
  const std::int64_t chunks = (positions + kAttentionChunk - 1) / kAttentionChunk;
  const std::int64_t block = std::min(rows, queries_per_block(shared)) * shared;
  const std::int64_t slots = (kTasksPerThread * threads + 1) * chunks;  // the larger of the two ways to split
  return static_cast<std::size_t>(slots * block * (shape.layout.head_dim + 2)) * sizeof(float) +
         static_cast<std::size_t>(rows) * sizeof(Block);
}

}  // namespace drafthorse
