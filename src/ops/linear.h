#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/exec_context.h"
#include "quant/packed_matrix.h"
#include "tensor/rows.h"

namespace drafthorse {

/// Activation rows in the order the linear kernels of `type` read. Borrowed; feeds any number of matrices of that type.
struct PackedRows {
  WeightType type = WeightType::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  const std::byte* data = nullptr;
};

/// Bytes pack_rows needs.
std::size_t packed_rows_bytes(WeightType type, std::int64_t rows, std::int64_t cols, const ExecContext& exec);
/// Packs x [rows >= 1, cols] into `buffer` (64-byte aligned, packed_rows_bytes long).
PackedRows pack_rows(ConstRows x, WeightType type, std::byte* buffer, const ExecContext& exec);

/// y = x W^T + bias. x [rows, weight.cols], packed for weight.type; y [rows, weight.rows]. A row of y has the same bits
/// whatever the other rows and the number of threads are.
void linear(const PackedMatrix& weight, const PackedRows& x, Rows y, const ExecContext& exec);

}  // namespace drafthorse
