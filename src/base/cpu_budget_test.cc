#include "base/cpu_budget.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "support/made_up_root.h"

namespace drafthorse {
namespace {

class Budget : public testing::Test {
 protected:
  static std::vector<int> first_cpus(int count) {
    std::vector<int> cpus(static_cast<std::size_t>(count));
    std::iota(cpus.begin(), cpus.end(), 0);
    return cpus;
  }
  void siblings(int cpu, const std::string& list) const {
    root_.write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", list + "\n");
  }
  CpuBudget budget(const std::vector<int>& allowed) const { return cpu_budget(allowed, root_.path()); }

  MadeUpRoot root_;
};

TEST_F(Budget, IsEveryCpuWhereNothingElseIsKnown) {
  const CpuBudget all = budget(first_cpus(8));
  EXPECT_EQ(all.threads(), 8);
  EXPECT_EQ(all.concurrent(), 8);
  EXPECT_EQ(all.reason(), "8 cores");
  EXPECT_EQ(budget({}).threads(), 1);
}

TEST_F(Budget, OfAContainerIsItsQuotaAndNotTheHostsCores) {
  root_.write("/proc/self/cgroup", "0::/docker/x\n");
  root_.write("/sys/fs/cgroup/docker/x/cpu.max", "200000 100000\n");
  const CpuBudget two = budget(first_cpus(8));
  EXPECT_EQ(two.threads(), 2);
  EXPECT_EQ(two.concurrent(), 2);
  EXPECT_EQ(two.reason(), "a quota of 2 CPUs; 8 cores");
}

TEST_F(Budget, IsTheTightestQuotaOnTheWayToTheRoot) {
  root_.write("/proc/self/cgroup", "0::/a/b/c\n");
  root_.write("/sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
  root_.write("/sys/fs/cgroup/a/b/cpu.max", "350000 100000\n");
  root_.write("/sys/fs/cgroup/a/cpu.max", "500000 100000\n");
  EXPECT_EQ(budget(first_cpus(8)).threads(), 3);  // half a CPU would be throttled while the others wait for it
  EXPECT_EQ(budget(first_cpus(8)).reason(), "a quota of 3.5 CPUs; 8 cores");
}

TEST_F(Budget, ReadsTheFirstVersionOfControlGroups) {
  root_.write("/proc/self/cgroup", "3:cpu,cpuacct:/job\n2:memory:/job\n");
  root_.write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "400000\n");
  root_.write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(budget(first_cpus(8)).threads(), 4);
  root_.write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(budget(first_cpus(8)).threads(), 8);
}

TEST_F(Budget, OfLessThanOneCpuIsOneThread) {
  root_.write("/proc/self/cgroup", "0::/\n");
  root_.write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(budget(first_cpus(4)).threads(), 1);
}

TEST_F(Budget, CountsCoresAndNotHyperThreads) {
  for (int cpu = 0; cpu < 8; ++cpu) siblings(cpu, std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
  const CpuBudget all = budget(first_cpus(8));
  EXPECT_EQ(all.threads(), 4);
  EXPECT_EQ(all.concurrent(), 8);
  EXPECT_EQ(all.cpus, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(Budget, TakesOneCpuOfEveryCoreFirst) {
  for (int cpu = 0; cpu < 4; ++cpu) siblings(cpu, cpu < 2 ? "0-1" : "2-3");
  EXPECT_EQ(budget(first_cpus(4)).cpus, (std::vector<int>{0, 2, 1, 3}));
}

TEST_F(Budget, FollowsTheAffinityMask) {
  for (int cpu = 0; cpu < 8; ++cpu) siblings(cpu, std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
  const CpuBudget four = budget({1, 3, 5, 7});  // both hyper-threads of two cores
  EXPECT_EQ(four.threads(), 2);
  EXPECT_EQ(four.cpus, (std::vector<int>{1, 3, 5, 7}));
}

TEST_F(Budget, IgnoresWhatIsMalformed) {
  root_.write("/proc/self/cgroup", "nonsense\n0:/half\n0::/x\n");
  for (const char* text : {"", "max", "abc 100000", "200000", "200000 0", "-5 100000", "nan 1", "1e999 1"}) {
    root_.write("/sys/fs/cgroup/x/cpu.max", text);
    EXPECT_EQ(budget(first_cpus(8)).threads(), 8) << text;
  }
  siblings(0, "");
  EXPECT_EQ(budget(first_cpus(8)).threads(), 8);
}

TEST_F(Budget, OfThisMachineIsSane) {
  const CpuBudget here = cpu_budget();
  EXPECT_GE(here.threads(), 1);
  EXPECT_LE(here.threads(), here.concurrent());
  EXPECT_FALSE(here.cpus.empty());
}

}  // namespace
}  // namespace drafthorse
