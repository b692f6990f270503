#pragma once

#include <cstdint>

namespace drafthorse {

/// Allocations of the whole process so far: operator new, aligned_alloc and mmap, counted in the test program that
/// links this.
std::int64_t allocation_count();

}  // namespace drafthorse
