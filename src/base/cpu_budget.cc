#include "base/cpu_budget.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>

#include "base/control_groups.h"

namespace drafthorse {
namespace {

std::vector<int> affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

/// A word that all hyper-threads of the CPU's core share; the CPU's own name where the kernel does not say.
std::string core_of(int cpu, const std::string& root) {
  const std::string name = "cpu" + std::to_string(cpu);
  std::ifstream file(root + "/sys/devices/system/cpu/" + name + "/topology/thread_siblings_list");
  std::string siblings;
  return std::getline(file, siblings) && !siblings.empty() ? siblings : name;
}

std::optional<double> positive_number(const std::string& path, int which) {
  std::ifstream file(path);
  double number = 0.0;
  for (int i = 0; i <= which; ++i) {
    if (!(file >> number)) return std::nullopt;  // "max" too
  }
  if (!(number > 0.0) || !std::isfinite(number)) return std::nullopt;  // -1: no limit
  return number;
}

std::optional<double> group_quota(const ControlGroup& group) {
  const std::string first = group.folder + (group.unified ? "cpu.max" : "cpu.cfs_quota_us");
  const std::string second = group.folder + (group.unified ? "cpu.max" : "cpu.cfs_period_us");
  const auto quota = positive_number(first, 0);
  const auto period = positive_number(second, group.unified ? 1 : 0);
  if (!quota || !period) return std::nullopt;
  return *quota / *period;
}

}  // namespace

int CpuBudget::concurrent() const {
  const int all = std::max(1, static_cast<int>(cpus.size()));
  return quota && *quota < all ? std::max(1, static_cast<int>(*quota)) : all;
}

int CpuBudget::threads() const { return std::min(cores, concurrent()); }

std::string CpuBudget::reason() const {
  std::string text;
  if (threads() < cores) {
    char number[32];
    std::snprintf(number, sizeof number, "%.3g", *quota);
    text = "a quota of " + std::string(number) + (*quota == 1.0 ? " CPU; " : " CPUs; ");
  }
  return text + std::to_string(cores) + (cores == 1 ? " core" : " cores");
}

CpuBudget cpu_budget() { return cpu_budget(affinity(), ""); }

CpuBudget cpu_budget(std::span<const int> allowed, const std::string& root) {
  CpuBudget budget;
  std::map<std::string, int> taken;        // CPUs of a core so far
  std::vector<std::pair<int, int>> order;  // hyper-thread of its core, CPU
  for (const int cpu : allowed) order.emplace_back(taken[core_of(cpu, root)]++, cpu);
  std::sort(order.begin(), order.end());
  for (const auto& [thread, cpu] : order) budget.cpus.push_back(cpu);
  budget.cores = std::max(1, static_cast<int>(taken.size()));
  for (const ControlGroup& group : control_groups("cpu", root)) {
    const auto quota = group_quota(group);
    if (quota && quota < budget.quota.value_or(*quota + 1.0)) budget.quota = quota;
  }
  return budget;
}

}  // namespace drafthorse
