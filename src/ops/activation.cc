#include "ops/activation.h"

#include <algorithm>

#include "base/check.h"
#include "ops/row_ranges.h"

namespace drafthorse {
namespace {

// An exponential costs about as much as this many plain values.
constexpr std::int64_t kExpCost = 4;
constexpr std::int64_t kColumns = 1024;  // of one piece of work: a single row is shared too

}  // namespace

void silu_multiply(ConstRows gate_up, Rows out, const ExecContext& exec) {
  DRAFTHORSE_CHECK(gate_up.rows == out.rows && gate_up.cols == 2 * out.cols,
                   gate_up.cols << " columns into " << out.cols);
  const std::int64_t pieces = (out.cols + kColumns - 1) / kColumns;
  const std::int64_t width = std::min(kColumns, out.cols);
  for_ranges(exec, out.rows * pieces, width * kExpCost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / pieces;
      const std::int64_t first = i % pieces * kColumns;
      const float* gate = gate_up.row(row) + first;
      exec.kernels.silu_multiply(gate, gate + out.cols, out.row(row) + first, std::min(kColumns, out.cols - first));
    }
  });
}

void softplus_gate(Rows gate, Rows x, const ExecContext& exec) {
  DRAFTHORSE_CHECK(gate.rows == x.rows && gate.cols > 0 && x.cols % gate.cols == 0,
                   gate.cols << " gates for " << x.cols << " columns");
  const std::int64_t head_dim = x.cols / gate.cols;
  for_ranges(exec, x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      exec.kernels.softplus(gate.row(r), gate.cols);
      for (std::int64_t h = 0; h < gate.cols; ++h)
        exec.kernels.scale(gate.row(r)[h], x.row(r) + h * head_dim, head_dim);
    }
  });
}

}  // namespace drafthorse
