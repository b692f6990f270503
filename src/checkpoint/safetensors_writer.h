#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensor/element_type.h"

namespace drafthorse {

/// A tensor of a file that is going to be written.
struct TensorPlan {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<std::int64_t> shape;

  std::uint64_t bytes() const;
};

/// Writes one safetensors file from front to back, so that no more of it than a piece is ever in memory. The bytes of
/// the first tensor begin at a multiple of 64 in the file. The file appears under its name when it is whole.
class SafetensorsWriter {
 public:
  /// Names are unique. Throws Error naming the file when it cannot be made.
  SafetensorsWriter(const std::string& path, std::span<const TensorPlan> tensors,
                    const std::map<std::string, std::string>& metadata);
  /// Removes what was written unless finish() was reached.
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  /// The next bytes: the tensors' in the order of their plans, in pieces of any size. Throws Error when the disk is
  /// full.
  void write(std::span<const std::byte> bytes);
  /// All bytes are written: puts them on the disk and gives the file its name.
  void finish();
  /// Of the whole file.
  std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::string path_;
  std::string temporary_;
  int file_ = -1;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t written_ = 0;
};

}  // namespace drafthorse
