#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace drafthorse {

/// How much of the machine this process may compute with.
struct CpuBudget {
  /// The CPUs of the affinity mask, in the order threads should take them: one of every core first, then the second
  /// hyper-threads.
  std::vector<int> cpus;
  int cores = 1;                ///< distinct cores among them
  std::optional<double> quota;  ///< CPUs' worth of time the control groups grant, the tightest of them

  /// Threads that compute without waiting for each other's turn: CPUs, less where the quota is less. At least 1.
  int concurrent() const;
  /// Threads to compute with unless the user says otherwise: one a core, since the second hyper-thread adds no memory
  /// bandwidth, and no more than whole CPUs of the quota, since a team whose member is throttled waits for it. At least
  /// 1.
  int threads() const;
  /// Why threads() is what it is, for people: "4 cores", "a quota of 2.5 CPUs; 8 cores".
  std::string reason() const;
};

/// Asks the kernel. Sources that are missing or malformed do not count.
CpuBudget cpu_budget();
/// The same for a given affinity mask, with `root` before every path; for tests.
CpuBudget cpu_budget(std::span<const int> allowed, const std::string& root);

}  // namespace drafthorse
