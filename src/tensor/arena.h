#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/aligned_buffer.h"
#include "tensor/rows.h"

namespace drafthorse {

/// Scratch of one forward pass: memory handed out in order and taken back all at once. After the first passes of the
/// largest shape it allocates nothing. Not thread-safe; what it hands out lives until reset().
class Arena {
 public:
  /// 64-byte aligned, not cleared.
  std::byte* bytes(std::size_t count);
  /// A [rows, cols] matrix, stride = cols rounded up to 16 values.
  Rows rows(std::int64_t row_count, std::int64_t col_count);
  template <typename T>
  T* array(std::size_t count) {
    return reinterpret_cast<T*>(bytes(count * sizeof(T)));
  }
  /// Takes everything back. Blocks that were needed are merged into one, so that a steady state is one block.
  void reset();

 private:
  std::vector<AlignedBuffer> blocks_;
  std::size_t used_ = 0;  // of the last block
};

}  // namespace drafthorse
