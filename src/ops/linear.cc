#include "ops/linear.h"

#include "base/check.h"
#include "ops/row_ranges.h"

namespace drafthorse {

std::size_t packed_rows_bytes(WeightType type, std::int64_t rows, std::int64_t cols, const ExecContext& exec) {
  return exec.kernels.packed_rows_bytes(type, rows, cols);
}

PackedRows pack_rows(ConstRows x, WeightType type, std::byte* buffer, const ExecContext& exec) {
  DRAFTHORSE_CHECK(x.rows >= 1 && x.cols >= 1, "rows [" << x.rows << ", " << x.cols << "]");
  const std::int64_t groups = padded_groups(type, x.cols);
  for_ranges(exec, groups, x.rows * kGroup, [&](std::int64_t begin, std::int64_t end) {
    exec.kernels.pack_rows(type, x.data, x.stride, x.rows, x.cols, begin, end, buffer);
  });
  return {type, x.rows, x.cols, buffer};
}

void linear(const PackedMatrix& weight, const PackedRows& x, Rows y, const ExecContext& exec) {
  DRAFTHORSE_CHECK(x.type == weight.type, "rows packed for another weight type");
  DRAFTHORSE_CHECK(x.cols == weight.cols && y.cols == weight.rows && y.rows == x.rows,
                   "[" << x.rows << ", " << x.cols << "] by [" << weight.rows << ", " << weight.cols << "] into ["
                       << y.rows << ", " << y.cols << "]");
  // One tile a task: every thread reads one contiguous stream. The kernel could walk several tiles in lock-step, which
  // is slower with the fetching it does by itself. Whole pass of a 0.6B model at 8 rows with 1 / 2 / 4 tiles in
  // lock-step, medians: bf16 32.8 / 34.9 / 39.2 ms, q8_0 20.1 / 20.5 / 25.3 ms (2 cores of AMD Zen 4, table avx512).
  exec.pool.parallel_for(weight.tiles(), [&](std::int64_t tile, int) {
    exec.kernels.linear({.type = weight.type,
                         .weights = weight.stream(),
                         .tile_bytes = weight.tile_bytes(),
                         .groups = weight.groups(),
                         .tiles = &tile,
                         .tile_count = 1,
                         .x = x.data,
                         .rows = x.rows,
                         .bias = weight.bias.as<float>(),
                         .outputs = weight.rows,
                         .y = y.data,
                         .y_stride = y.stride});
  });
}

}  // namespace drafthorse
