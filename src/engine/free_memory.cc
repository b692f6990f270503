#include "engine/free_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

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

/// Names of one version's files in a group's folder.
struct GroupFiles {
  std::string mount;
  const char* limit;
  const char* usage;
  const char* droppable;  // key in memory.stat: pages of files not used lately
};

/// What the limits from `group` up to the root of its hierarchy leave.
std::uint64_t left_in_groups(const GroupFiles& files, std::string group) {
  std::uint64_t left = std::numeric_limits<std::uint64_t>::max();
  while (true) {
    const std::string folder = files.mount + group + (group == "/" ? "" : "/");
    const auto limit = read_number(folder + files.limit);
    const auto usage = read_number(folder + files.usage);
    if (limit && usage) {
      const std::uint64_t droppable = read_number(folder + "memory.stat", files.droppable).value_or(0);
      const std::uint64_t taken = *usage - std::min(*usage, droppable);
      left = std::min(left, *limit - std::min(*limit, taken));
    }
    const std::size_t slash = group.find_last_of('/');
    if (group.size() <= 1 || slash == std::string::npos) return left;
    group.resize(std::max<std::size_t>(slash, 1));
  }
}

}  // namespace

std::uint64_t free_memory(const std::string& root) {
  std::uint64_t left = std::numeric_limits<std::uint64_t>::max();
  if (const auto available = read_number(root + "/proc/meminfo", "MemAvailable:")) left = *available * 1024;
  std::ifstream groups(root + "/proc/self/cgroup");  // lines "id:controllers:path"
  std::string line;
  while (std::getline(groups, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      left = std::min(left,
                      left_in_groups({root + "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"}, path));
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      left = std::min(left, left_in_groups({root + "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                            "memory.usage_in_bytes", "total_inactive_file"},
                                           path));
    }
  }
  return left;
}

}  // namespace drafthorse
