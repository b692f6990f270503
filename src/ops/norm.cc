#include "ops/norm.h"

#include "base/check.h"
#include "ops/row_ranges.h"

namespace drafthorse {

void rms_norm(ConstRows x, const float* weight, float eps, Rows out, const ExecContext& exec) {
  DRAFTHORSE_CHECK(x.rows == out.rows && x.cols == out.cols,
                   x.rows << " x " << x.cols << " into " << out.rows << " x " << out.cols);
  for_ranges(exec, x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) exec.kernels.rms_norm(x.row(r), weight, eps, x.cols, out.row(r));
  });
}

void add_rms_norm(ConstRows a, Rows x, const float* weight, float eps, Rows out, const ExecContext& exec) {
  DRAFTHORSE_CHECK(x.rows == out.rows && x.cols == out.cols && a.rows == x.rows && a.cols == x.cols,
                   a.rows << " x " << a.cols << " onto " << x.rows << " x " << x.cols);
  for_ranges(exec, x.rows, 2 * x.cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      exec.kernels.add(a.row(r), x.row(r), x.cols);
      exec.kernels.rms_norm(x.row(r), weight, eps, x.cols, out.row(r));
    }
  });
}

}  // namespace drafthorse
