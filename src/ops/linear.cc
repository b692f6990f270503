#include "ops/linear.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "ops/row_ranges.h"

namespace drafthorse {
namespace {

constexpr int kMaxStreams = 4;
// From here on the pass is bound by arithmetic: one tile at a time stays in the near caches.
constexpr std::int64_t kComputeBoundRows = 32;

/// Tiles a task walks in lock-step. Several read streams per core are what reaches the memory's bandwidth; int8 kernels with a few
/// rows have less room in registers and prefer two. Never so many that threads would run out of tasks.
int streams(WeightType type, std::int64_t rows, std::int64_t tiles, int threads) {
  if (rows > kComputeBoundRows) return 1;
  const std::int64_t wanted = type == WeightType::kQ8_0 && rows >= 4 ? 2 : kMaxStreams;
  return static_cast<int>(std::clamp<std::int64_t>(tiles / (2 * threads), 1, wanted));
}

}  // namespace

std::size_t packed_rows_bytes(WeightType type, std::int64_t rows, std::int64_t cols, const ExecContext& exec) {
  return exec.kernels.packed_rows_bytes(type, rows, cols);
}

PackedRows pack_rows(ConstRows x, WeightType type, std::byte* buffer, const ExecContext& exec) {
  DRAFTHORSE_CHECK(x.rows >= 1 && x.cols >= 1, "rows [" << x.rows << ", " << x.cols << "]");
  const std::int64_t groups = (x.cols + kGroup - 1) / kGroup;
  for_ranges(exec, groups, x.rows * kGroup, [&](std::int64_t begin, std::int64_t end) {
    exec.kernels.pack_rows(type, x.data, x.stride, x.rows, x.cols, begin, end, buffer);
  });
  return {type, x.rows, x.cols, buffer};
}

void linear(const PackedMatrix& weight, const PackedRows& x, Rows y, const ExecContext& exec) {
  DRAFTHORSE_CHECK(x.type == weight.type, "rows packed for another weight type");
  DRAFTHORSE_CHECK(x.cols == weight.cols && y.cols == weight.rows && y.rows == x.rows,
                   "[" << x.rows << ", " << x.cols << "] by [" << weight.rows << ", " << weight.cols << "] into [" << y.rows
                       << ", " << y.cols << "]");
  const std::int64_t tiles = weight.tiles();
  const int lanes = streams(weight.type, x.rows, tiles, exec.pool.threads());
  // Task k walks tiles k, k + tasks, k + 2 tasks, ..: one from each part of N. A thread's consecutive tasks continue its streams.
  const std::int64_t tasks = (tiles + lanes - 1) / lanes;
  exec.pool.parallel_for(tasks, [&](std::int64_t task, int) {
    std::array<std::int64_t, kMaxStreams> walked;
    int count = 0;
    for (std::int64_t tile = task; tile < tiles; tile += tasks) walked[static_cast<std::size_t>(count++)] = tile;
    exec.kernels.linear({.type = weight.type,
                         .weights = weight.data.data(),
                         .tile_bytes = weight.tile_bytes(),
                         .groups = weight.groups(),
                         .tiles = walked.data(),
                         .tile_count = count,
                         .x = x.data,
                         .rows = x.rows,
                         .bias = weight.bias.as<float>(),
                         .outputs = weight.rows,
                         .y = y.data,
                         .y_stride = y.stride});
  });
}

}  // namespace drafthorse
