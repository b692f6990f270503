#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "quant/weight_type.h"
#include "tensor/element_type.h"

namespace drafthorse {

/// One tensor as it lies in a file: row-major, little endian, at any alignment. Borrows from the TensorSource it came
/// from.
struct TensorView {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<std::int64_t> shape;   ///< outermost first; empty for a scalar; no dimension is negative
  std::span<const std::byte> bytes;  ///< exactly the product of shape times element_bytes(type)
  const MappedFile* file = nullptr;  ///< holds `bytes`; lets a loader release pages it has read
  /// Of a matrix that is there in kernel order only, as part of a PackedStack: then type is kU8 and bytes is empty.
  std::optional<WeightType> packed = {};

  /// Product of shape.
  std::int64_t elements() const;
  /// Bytes it takes in the file; of a packed matrix without what pads its stack.
  std::uint64_t stored_bytes() const;
  /// How its elements are held, for people: "BF16", "Q4_K".
  std::string type_text() const;
};

/// Rows [first, first + rows) of the [total, cols] tensor `name`.
struct StackPart {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t first = 0;
  std::int64_t total = 0;
  bool operator==(const StackPart&) const = default;
};

/// Matrices of equal width, stacked in order, that a file holds in kernel order (quant/packed_matrix.h).
struct PackedStack {
  WeightType type = WeightType::kF32;
  std::int64_t cols = 0;
  std::vector<StackPart> parts;
  std::span<const std::byte> bytes;  ///< packed_bytes(type, rows(), cols) at a multiple of 64 bytes into the file
  const MappedFile* file = nullptr;

  std::int64_t rows() const;
};

/// "[3, 4]"; "[]" for a scalar.
std::string shape_text(const std::vector<std::int64_t>& shape);

/// `tensor "name"` for messages: on one line whatever the name holds, and cut to a fit length.
std::string tensor_text(std::string_view name);

/// The named tensors of one model, whatever file format they lie in. Views live as long as the source does.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  TensorSource() = default;
  TensorSource(const TensorSource&) = delete;
  TensorSource& operator=(const TensorSource&) = delete;

  /// nullptr when there is no tensor of that name. The pointer stays valid as long as the source.
  virtual const TensorView* find(std::string_view name) const = 0;
  /// Every name, sorted.
  virtual std::vector<std::string> names() const = 0;
  /// What is there in kernel order already, in file order.
  virtual std::span<const PackedStack> stacks() const { return {}; }
  /// The stack of exactly these parts in this order; nullptr when there is none. Valid as long as the source.
  const PackedStack* find_stack(std::span<const StackPart> parts) const;
  /// The folder or file the source was opened from, for messages.
  virtual const std::string& path() const = 0;

  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// The tensor `name`, which must have exactly `shape` and a float type. Throws Error naming the file, the tensor, the
  /// expected and the found shape or type.
  const TensorView& require(std::string_view name, const std::vector<std::int64_t>& shape) const;
};

}  // namespace drafthorse
