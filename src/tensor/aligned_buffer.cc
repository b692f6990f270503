#include "tensor/aligned_buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"

namespace drafthorse {
namespace {

constexpr std::size_t kMapFrom = std::size_t{1}
                                 << 20;  // below, the allocator's free lists are cheaper than page faults

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* memory = nullptr;
  if (bytes >= kMapFrom) {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) memory = nullptr;
  } else {
    memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory != nullptr) std::memset(memory, 0, bytes);
  }
  if (memory == nullptr)
    throw Error("cannot reserve " + std::to_string(bytes) + " bytes of memory", ErrorKind::kMemory);
  data_ = static_cast<std::byte*>(memory);
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ == nullptr) return;
  if (size_ >= kMapFrom) {
    ::munmap(data_, size_);
  } else {
    std::free(data_);
  }
}

}  // namespace drafthorse
