#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace drafthorse {

/// Owned memory on a 64-byte boundary, zero-filled. Large buffers come straight from the kernel: a page that is never
/// written costs nothing. Movable, not copyable.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  /// Throws Error (kind memory) when `bytes` cannot be reserved. 0 is allowed (data() is then null).
  explicit AlignedBuffer(std::size_t bytes);
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace drafthorse
