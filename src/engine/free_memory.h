#pragma once

#include <cstdint>
#include <string>

namespace drafthorse {

/// Bytes this process may still take without swapping or being killed: MemAvailable of /proc/meminfo, and what the
/// memory limits of its control groups (v2, else v1, parents included) leave, whichever is less. Files the kernel can
/// drop do not count as taken. Without either source: the largest value. `root` stands before every path; for tests.
std::uint64_t free_memory(const std::string& root = "");

}  // namespace drafthorse
