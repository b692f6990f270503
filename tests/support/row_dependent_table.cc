#include "support/row_dependent_table.h"

namespace drafthorse {
namespace {

void row_dependent_linear(const LinearTask& task) {
  kernel_table().linear(task);
  const float nudge = static_cast<float>(task.rows - 1) * 0x1p-16f;
  for (int i = 0; i < task.tile_count; ++i) {
    const std::int64_t first = task.tiles[i] * kTileRows;
    for (std::int64_t n = first; n < first + kTileRows && n < task.outputs; ++n) {
      for (std::int64_t row = 0; row < task.rows; ++row) task.y[row * task.y_stride + n] += nudge;
    }
  }
}

KernelTable faulty() {
  KernelTable table = kernel_table();
  table.name = "row-dependent";
  table.linear = row_dependent_linear;
  return table;
}

}  // namespace

const KernelTable& row_dependent_table() {
  static const KernelTable table = faulty();
  return table;
}

}  // namespace drafthorse
