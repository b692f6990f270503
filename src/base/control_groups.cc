#include "base/control_groups.h"

#include <algorithm>
#include <fstream>

namespace drafthorse {
namespace {

void add_with_parents(const std::string& mount, std::string group, bool unified, std::vector<ControlGroup>& groups) {
  while (true) {
    groups.push_back({mount + group + (group == "/" ? "" : "/"), unified});
    const std::size_t slash = group.find_last_of('/');
    if (group.size() <= 1 || slash == std::string::npos) return;
    group.resize(std::max<std::size_t>(slash, 1));
  }
}

}  // namespace

std::vector<ControlGroup> control_groups(const std::string& controller, const std::string& root) {
  std::vector<ControlGroup> groups;
  std::ifstream file(root + "/proc/self/cgroup");  // lines "id:controllers:path"
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      add_with_parents(root + "/sys/fs/cgroup", path, true, groups);
    } else if (("," + controllers + ",").find("," + controller + ",") != std::string::npos) {
      add_with_parents(root + "/sys/fs/cgroup/" + controller, path, false, groups);
    }
  }
  return groups;
}

}  // namespace drafthorse
