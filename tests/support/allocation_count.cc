#include "support/allocation_count.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace drafthorse {
namespace {

std::atomic<std::int64_t> count{0};

}  // namespace

std::int64_t allocation_count() { return count.load(); }

/// Called by the replacements below.
void count_allocation() { count.fetch_add(1, std::memory_order_relaxed); }

}  // namespace drafthorse

void* operator new(std::size_t bytes) {
  drafthorse::count_allocation();
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

// What AlignedBuffer takes its memory from. The program's own definitions come before the C library's.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  drafthorse::count_allocation();
  void* memory = nullptr;
  return ::posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
}

extern "C" void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  drafthorse::count_allocation();
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
