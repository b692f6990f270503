#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <xmmintrin.h>

#include <numeric>

#include "base/error.h"

namespace drafthorse {
namespace {

class ThreadPoolTest : public ::testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, EveryTaskRunsOnce) {
  ThreadPool pool(GetParam());
  for (const int tasks : {0, 1, 2, 3, 7, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(tasks));
    pool.parallel_for(tasks, [&](std::int64_t task, int thread) {
      ASSERT_LT(thread, pool.threads());
      ++runs[static_cast<std::size_t>(task)];
    });
    for (const auto& count : runs) EXPECT_EQ(count.load(), 1);
  }
}

TEST_P(ThreadPoolTest, EveryThreadEntersARegion) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> entered{0};
    pool.run([&](int) { ++entered; });
    ASSERT_EQ(entered.load(), GetParam());
  }
}

// A worker may miss a region whose tasks others did. It must neither come late into the next one twice nor miss a
// region that needs everybody.
TEST_P(ThreadPoolTest, ShortRegionsOfBothKindsInTurnLoseAndRepeatNothing) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 3000; ++round) {
    std::atomic<int> tasks{0};
    for (int i = 0; i < round % 4; ++i) pool.parallel_for(2, [&](std::int64_t, int) { ++tasks; });
    ASSERT_EQ(tasks.load(), 2 * (round % 4));
    std::vector<int> entered(static_cast<std::size_t>(GetParam()), 0);
    pool.run([&](int thread) { ++entered[static_cast<std::size_t>(thread)]; });
    ASSERT_EQ(entered, std::vector<int>(static_cast<std::size_t>(GetParam()), 1));
  }
}

TEST_P(ThreadPoolTest, ABarrierSeparatesPhases) {
  ThreadPool pool(GetParam());
  std::vector<int> first(static_cast<std::size_t>(GetParam()));
  std::atomic<int> wrong{0};
  pool.run([&](int thread) {
    for (int round = 1; round <= 100; ++round) {
      first[static_cast<std::size_t>(thread)] = round;
      pool.barrier();
      if (std::accumulate(first.begin(), first.end(), 0) != round * GetParam()) ++wrong;
      pool.barrier();
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(ThreadPoolTest, AnExceptionReachesTheCallerAndThePoolLives) {
  ThreadPool pool(GetParam());
  EXPECT_THROW(pool.parallel_for(10,
                                 [](std::int64_t task, int) {
                                   if (task == 7) throw Error("seven");
                                 }),
               Error);
  std::atomic<int> count{0};
  pool.parallel_for(10, [&](std::int64_t, int) { ++count; });
  EXPECT_EQ(count.load(), 10);
}

TEST_P(ThreadPoolTest, EveryThreadHasTheFloatStateOfTheContractAndTheCallerGetsItsOwnBack) {
  ThreadPool pool(GetParam());
  const unsigned own = 0x9fc0;  // flush to zero, denormals are zero
  _mm_setcsr(own);
  std::atomic<int> wrong{0};
  pool.run([&](int) {
    if ((_mm_getcsr() & ~0x3fu) != 0x1f80u) ++wrong;
  });
  const unsigned after = _mm_getcsr();
  _mm_setcsr(0x1f80);
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(after & ~0x3fu, own & ~0x3fu);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, ::testing::Values(1, 2, 3, 8));

TEST(ThreadPool, SleepingWorkersWakeUp) {
  ThreadPool pool(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // far past the spinning time
  std::atomic<int> entered{0};
  pool.run([&](int) { ++entered; });
  EXPECT_EQ(entered.load(), 2);
}

TEST(ThreadPool, IdleWorkersUseNoTime) {
  ThreadPool pool(2);
  pool.run([](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto process_time = [] {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const double before = process_time();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(process_time() - before, 0.02);
}

TEST(ThreadPool, PinsThreadsToDifferentCpusAndLetsTheCallerGo) {
  const auto affinity = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::pthread_getaffinity_np(::pthread_self(), sizeof set, &set);
    return set;
  };
  const cpu_set_t before = affinity();
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one CPU";
  {
    ThreadPool pool(2, true);
    cpu_set_t pinned[2];
    pool.run([&](int thread) { pinned[thread] = affinity(); });
    EXPECT_EQ(CPU_COUNT(&pinned[0]), 1);
    EXPECT_EQ(CPU_COUNT(&pinned[1]), 1);
    EXPECT_FALSE(CPU_EQUAL(&pinned[0], &pinned[1]));
  }
  const cpu_set_t after = affinity();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace drafthorse
