#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ops/exec_context.h"
#include "ops/linear.h"
#include "quant/packed_matrix.h"
#include "tensor/arena.h"
#include "tensor/rows.h"

namespace drafthorse {

/// Rows on their way into one or several linear layers: packed once per weight type.
class LinearInput {
 public:
  /// `buffer` as pack_rows wants it, for any type the layers have.
  LinearInput(ConstRows x, std::byte* buffer, const ExecContext& exec) : x_(x), buffer_(buffer), exec_(exec) {}

  /// y = x W^T + bias.
  void into(const PackedMatrix& weight, Rows y) {
    if (packed_.data == nullptr || packed_.type != weight.type) packed_ = pack_rows(x_, weight.type, buffer_, exec_);
    linear(weight, packed_, y, exec_);
  }

 private:
  ConstRows x_;
  std::byte* buffer_;
  const ExecContext& exec_;
  PackedRows packed_;
};

/// A buffer for packed rows of up to `cols` columns, whatever the weight type.
inline std::size_t packing_bytes(std::int64_t rows, std::int64_t cols, const ExecContext& exec) {
  std::size_t most = 0;
  for (const WeightType type : kWeightTypes) {
    most = std::max(most, packed_rows_bytes(type, rows, cols, exec));
  }
  return most;
}

}  // namespace drafthorse
