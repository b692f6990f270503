#include "engine/free_memory.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "base/control_groups.h"

namespace drafthorse {
namespace {

/// The number after `key` in a file of "key value" lines, or the file's only number when `key` is empty.
std::optional<std::uint64_t> read_number(const std::string& path, const std::string& key = "") {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    if (!key.empty() && (!(words >> name) || name != key)) continue;
    std::uint64_t value = 0;
    if (words >> value) return value;
    return std::nullopt;  // "max"
  }
  return std::nullopt;
}

/// What the limit of one group leaves.
std::uint64_t left_in(const ControlGroup& group) {
  // The last: a key in memory.stat, pages of files not used lately.
  const auto [limit_name, usage_name, droppable_name] =
      group.unified ? std::array{"memory.max", "memory.current", "inactive_file"}
                    : std::array{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
  const auto limit = read_number(group.folder + limit_name);
  const auto usage = read_number(group.folder + usage_name);
  if (!limit || !usage) return std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t droppable = read_number(group.folder + "memory.stat", droppable_name).value_or(0);
  const std::uint64_t taken = *usage - std::min(*usage, droppable);
  return *limit - std::min(*limit, taken);
}

}  // namespace

std::uint64_t free_memory(const std::string& root) {
  std::uint64_t left = std::numeric_limits<std::uint64_t>::max();
  if (const auto available = read_number(root + "/proc/meminfo", "MemAvailable:")) left = *available * 1024;
  for (const ControlGroup& group : control_groups("memory", root)) left = std::min(left, left_in(group));
  return left;
}

}  // namespace drafthorse
