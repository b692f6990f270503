#include "engine/free_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "support/made_up_root.h"

namespace drafthorse {
namespace {

class FreeMemory : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const { root_.write(path, text); }

  MadeUpRoot root_;
};

TEST_F(FreeMemory, IsWhatTheMachineHasWithoutLimits) {
  write("/proc/meminfo", "MemTotal:  900 kB\nMemAvailable:     500 kB\n");
  write("/proc/self/cgroup", "0::/user\n");
  write("/sys/fs/cgroup/user/memory.max", "max\n");
  write("/sys/fs/cgroup/user/memory.current", "7\n");
  EXPECT_EQ(free_memory(root_.path()), 500u * 1024);
}

TEST_F(FreeMemory, IsWhatTheTightestParentGroupLeaves) {
  write("/proc/meminfo", "MemAvailable:     500 kB\n");
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/sys/fs/cgroup/a/b/memory.max", "300000\n");
  write("/sys/fs/cgroup/a/b/memory.current", "100000\n");
  write("/sys/fs/cgroup/a/memory.max", "200000\n");
  write("/sys/fs/cgroup/a/memory.current", "150000\n");
  write("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 30000\n");
  EXPECT_EQ(free_memory(root_.path()), 80000u);
}

TEST_F(FreeMemory, IsNothingWhenAGroupIsOverItsLimit) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "1000\n");
  write("/sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(free_memory(root_.path()), 0u);
}

TEST_F(FreeMemory, ReadsTheFirstVersionOfControlGroups) {
  write("/proc/self/cgroup", "5:cpu,memory:/job\n");
  write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000\n");
  write("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "400\n");
  EXPECT_EQ(free_memory(root_.path()), 600u);
}

TEST_F(FreeMemory, IsUnboundedWhereNothingIsKnown) { EXPECT_EQ(free_memory(root_.path()), UINT64_MAX); }

}  // namespace
}  // namespace drafthorse
