#pragma once

#include <string>
#include <vector>

namespace drafthorse {

/// A control group's folder in the kernel's file system, "/sys/fs/cgroup/a/b/".
struct ControlGroup {
  std::string folder;  ///< ends with a slash
  bool unified;        ///< of version 2
};

/// The groups this process is in that may carry `controller` ("cpu", "memory"), each followed by its parents up to the
/// root: a limit anywhere on the way counts. Version 2's hierarchy and version 1's of that controller. `root` stands
/// before every path; for tests.
std::vector<ControlGroup> control_groups(const std::string& controller, const std::string& root = "");

}  // namespace drafthorse
