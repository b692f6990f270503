#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"

/// Linear layers, plain C++: the numeric contract of docs/numerics.md ("Linear layers") in code.
namespace drafthorse::scalar {

std::size_t packed_rows_bytes(WeightType type, std::int64_t rows, std::int64_t cols);
void pack_rows(WeightType type, const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols,
               std::int64_t group_begin, std::int64_t group_end, std::byte* out);
void linear(const LinearTask& task);

}  // namespace drafthorse::scalar
