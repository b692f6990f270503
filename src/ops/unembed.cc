#include "ops/unembed.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace drafthorse {
namespace {

// Tiles of one range. Few rows: fewer reductions. Many rows: the range's logits stay in the
// caches.
constexpr std::int64_t kTilesFewRows = 16;
constexpr std::int64_t kTilesManyRows = 4;
constexpr std::int64_t kFewRows = 16;

struct Best {
  float value;
  std::int32_t id;
};

/// A total order, so that the winner does not depend on the order of the ranges.
bool beats(const Best& a, const Best& b) {
  const bool nan_a = std::isnan(a.value);
  const bool nan_b = std::isnan(b.value);
  if (nan_a != nan_b) return nan_b;
  if (nan_a || a.value == b.value) return a.id < b.id;
  return a.value > b.value;
}

/// A thread's running results, one entry a row.
struct Partial {
  Best* best;
  std::uint64_t* hash;
  Rows logits;  // of one range; not used when all logits are stored
  bool touched;
};

}  // namespace

void unembed(const PackedMatrix& head, const PackedRows& hidden, const UnembedTask& task, Arena& scratch,
             const ExecContext& exec) {
  const std::int64_t rows = hidden.rows;
  DRAFTHORSE_CHECK(hidden.type == head.type && hidden.cols == head.cols,
                   hidden.cols << " columns, head has " << head.cols);
  const bool stored = task.logits.data != nullptr;
  DRAFTHORSE_CHECK(!stored || (task.logits.rows == rows && task.logits.cols == head.rows), "shape of the logits");
  const std::int64_t range_tiles = rows <= kFewRows ? kTilesFewRows : kTilesManyRows;
  const std::int64_t range = range_tiles * kTileRows;
  const std::int64_t tiles = head.tiles();
  const std::int64_t tasks = (tiles + range_tiles - 1) / range_tiles;

  const int threads = exec.pool.threads();
  auto* partials = scratch.array<Partial>(static_cast<std::size_t>(threads));
  for (int t = 0; t < threads; ++t) {
    partials[t] = {scratch.array<Best>(static_cast<std::size_t>(rows)),
                   scratch.array<std::uint64_t>(static_cast<std::size_t>(rows)),
                   stored ? Rows{} : scratch.rows(rows, range), false};
  }

  exec.pool.parallel_for(tasks, [&](std::int64_t index, int thread) {
    Partial& mine = partials[thread];
    const std::int64_t first_tile = index * range_tiles;
    const std::int64_t last_tile = std::min(tiles, first_tile + range_tiles);
    const std::int64_t first = first_tile * kTileRows;
    const std::int64_t width = std::min(head.rows, last_tile * kTileRows) - first;
    float* y = stored ? task.logits.data + first : mine.logits.data;
    const std::int64_t stride = stored ? task.logits.stride : mine.logits.stride;
    // The range is a small matrix of its own.
    for (std::int64_t tile = 0; tile < last_tile - first_tile; ++tile) {
      exec.kernels.linear({.type = head.type,
                           .weights = head.stream() + static_cast<std::size_t>(first_tile) * head.tile_bytes(),
                           .tile_bytes = head.tile_bytes(),
                           .groups = head.groups(),
                           .tiles = &tile,
                           .tile_count = 1,
                           .x = hidden.data,
                           .rows = rows,
                           .bias = head.bias.size() == 0 ? nullptr : head.bias.as<float>() + first,
                           .outputs = width,
                           .y = y,
                           .y_stride = stride});
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      float* logits = y + r * stride;
      if (task.multiplier != 1.0f) exec.kernels.scale(task.multiplier, logits, width);
      if (task.cap > 0.0f) exec.kernels.softcap(task.cap, logits, width);
      if (task.argmax != nullptr) {
        const std::int64_t at = exec.kernels.argmax(logits, width);
        const Best found{logits[at], static_cast<std::int32_t>(first + at)};
        if (!mine.touched || beats(found, mine.best[r])) mine.best[r] = found;
      }
      if (task.hash != nullptr) {
        mine.hash[r] = (mine.touched ? mine.hash[r] : 0) + exec.kernels.logits_hash(logits, first, width);
      }
    }
    mine.touched = true;
  });

  for (std::int64_t r = 0; r < rows; ++r) {
    Best best{0.0f, -1};
    std::uint64_t hash = 0;
    for (int t = 0; t < threads; ++t) {
      const Partial& part = partials[t];
      if (!part.touched) continue;
      if (task.argmax != nullptr && (best.id < 0 || beats(part.best[r], best))) best = part.best[r];
      if (task.hash != nullptr) hash += part.hash[r];
    }
    if (task.argmax != nullptr) task.argmax[r] = best.id;
    if (task.hash != nullptr) task.hash[r] = hash;
  }
}

}  // namespace drafthorse
