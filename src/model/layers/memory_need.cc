#include "model/layers/memory_need.h"

#include <algorithm>

#include "base/cpu_budget.h"
#include "ops/attention.h"

namespace drafthorse {
namespace {

constexpr std::uint64_t kFloat = sizeof(float);

std::uint64_t as_count(std::int64_t value) { return static_cast<std::uint64_t>(value); }

}  // namespace

MemoryNeed memory_need(const NetworkSize& size, std::int64_t rows) {
  const AttentionBlockShape& attention = size.attention;
  const std::uint64_t norms =
      as_count(size.layers) * as_count(2 * attention.hidden + 2 * attention.kv.head_dim) + as_count(attention.hidden);
  const std::uint64_t rope = as_count(size.context) * as_count(size.rotary_dims);  // cosines and sines
  const std::int64_t pages = (size.context + attention.kv.page_positions - 1) / attention.kv.page_positions;
  const std::int64_t widest = std::max({attention.hidden, attention.q_cols(), size.intermediate, size.feature_width});
  // Residual, normed and delta rows; heads before and after attention; gate and up; features; packed rows at up to 4
  // bytes a value and some statistics. Buffers that grew are merged into one of up to twice the need.
  const std::int64_t row_values = 4 * attention.hidden + 2 * attention.q_cols() + 2 * attention.kv_cols() +
                                  2 * size.intermediate + size.feature_width + 2 * widest + 256;
  const std::uint64_t plans = 2 * AttentionPlan::scratch_bytes(attention_shape(attention), rows, size.context,
                                                               cpu_budget().concurrent());  // full and sliding layers
  return {.weights = size.linear_bytes + (norms + rope) * kFloat,
          .kv = as_count(size.layers * pages) * attention.kv.page_bytes(),
          .scratch = 2 * (as_count(rows * row_values) * kFloat + plans)};
}

}  // namespace drafthorse
