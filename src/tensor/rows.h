#pragma once

#include <cstdint>

namespace drafthorse {

/// A borrowed row-major matrix of float32: `rows` rows of `cols` values, row r at data + r * stride.
template <typename T>
struct RowsOf {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  T* row(std::int64_t r) const { return data + r * stride; }
  /// Rows [begin, end).
  RowsOf slice(std::int64_t begin, std::int64_t end) const {
    return {data + begin * stride, end - begin, cols, stride};
  }
  operator RowsOf<const T>() const { return {data, rows, cols, stride}; }
};

using Rows = RowsOf<float>;
using ConstRows = RowsOf<const float>;

}  // namespace drafthorse
