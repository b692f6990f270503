#include "ops/heads.h"

#include <algorithm>

#include "base/check.h"

namespace drafthorse {
namespace {

std::int64_t first_tile(const HeadRun& run) { return run.position / kKvTile; }
std::int64_t tiles_of(const HeadRun& run) {
  return run.rows == 0 ? 0 : (run.position + run.rows - 1) / kKvTile + 1 - first_tile(run);
}

void norm_and_rotate(const HeadSteps& steps, const float* norm, std::int64_t position, float* head,
                     const ExecContext& exec) {
  if (norm != nullptr) exec.kernels.rms_norm(head, norm, steps.norm_eps, steps.layout.head_dim, head);
  const RopeTable& rope = *steps.rope;
  exec.kernels.rope(head, rope.cos(position), rope.sin(position), rope.half(), rope.interleaved());
}

}  // namespace

void finish_heads(const HeadSteps& steps, std::span<const HeadRun> runs, Rows q, Rows k, ConstRows v,
                  const ExecContext& exec) {
  const KvLayout& layout = steps.layout;
  const std::int64_t dim = layout.head_dim;
  const std::int64_t group = steps.heads / layout.kv_heads;
  DRAFTHORSE_CHECK(steps.heads % layout.kv_heads == 0, steps.heads << " heads, " << layout.kv_heads << " kv heads");
  DRAFTHORSE_CHECK(q.data == nullptr || q.cols == steps.heads * dim, q.cols << " query columns");
  DRAFTHORSE_CHECK(k.cols == layout.kv_heads * dim && v.cols == k.cols,
                   k.cols << " key and " << v.cols << " value columns");
  DRAFTHORSE_CHECK(2 * steps.rope->half() <= dim, "rotary dims " << 2 * steps.rope->half() << " of " << dim);
  std::int64_t tiles = 0;
  for (const HeadRun& run : runs) {
    DRAFTHORSE_CHECK(run.position + run.rows <= steps.rope->positions(),
                     "rows [" << run.position << ", " << run.position + run.rows << ") of " << steps.rope->positions()
                              << " positions");
    tiles += tiles_of(run);
  }
  // One task per (32-position tile, kv head): nobody else writes to that key tile and value tile.
  exec.pool.parallel_for(tiles * layout.kv_heads, [&](std::int64_t task, int) {
    const std::int64_t kv_head = task % layout.kv_heads;
    std::int64_t tile = task / layout.kv_heads;
    std::size_t i = 0;
    while (tile >= tiles_of(runs[i])) tile -= tiles_of(runs[i++]);
    const HeadRun& run = runs[i];
    tile += first_tile(run);
    const std::int64_t begin = std::max(run.position, tile * kKvTile);
    const std::int64_t end = std::min(run.position + run.rows, (tile + 1) * kKvTile);
    std::byte* key_tile = run.pages[begin / layout.page_positions] + layout.head_tile_offset(begin, kv_head);
    std::byte* value_tile = key_tile + layout.key_tile_bytes();
    for (std::int64_t position = begin; position < end; ++position) {
      const std::int64_t row = run.first_row + position - run.position;
      if (q.data != nullptr) {
        for (std::int64_t g = 0; g < group; ++g) {
          norm_and_rotate(steps, steps.q_norm, position, q.row(row) + (kv_head * group + g) * dim, exec);
        }
      }
      float* key = k.row(row) + kv_head * dim;
      norm_and_rotate(steps, steps.k_norm, position, key, exec);
      exec.kernels.kv_write(layout.type, dim, position % kKvTile, key, v.row(row) + kv_head * dim, key_tile,
                            value_tile);
    }
  });
}

}  // namespace drafthorse
