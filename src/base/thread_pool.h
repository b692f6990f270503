#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace drafthorse {

struct CpuBudget;

/// A fixed team of threads for short parallel regions. The caller is thread 0. Workers spin for a while after a region,
/// so that the next one starts within a microsecond while tokens are generated, and sleep when nothing comes; with more
/// threads than CPUs nobody spins. A worker that has no CPU when tasks come is not waited for: the others do them.
/// Results must not depend on which thread does a task. Every thread runs regions under
/// FloatEnv. Not re-entrant; one caller at a time.
class ThreadPool {
 public:
  /// `threads` >= 1. `pin` binds every thread to a CPU of its own, one of each core first; the caller's own binding is
  /// undone by the destructor, which must run on the same thread.
  explicit ThreadPool(int threads, bool pin = false);
  /// The same with what the caller knows of the process's CPUs.
  ThreadPool(int threads, bool pin, const CpuBudget& budget);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(thread) once on every thread and returns when all have returned. The first exception is rethrown here;
  /// a body that uses barrier() must not throw.
  template <typename Body>
  void run(Body&& body) {
    run_on(Team::kEveryThread, body);
  }

  /// Calls body(task, thread) once for every task in [0, tasks). Each thread starts on its own contiguous share and
  /// then takes tasks of slower ones.
  template <typename Body>
  void parallel_for(std::int64_t tasks, Body&& body) {
    if (tasks <= 0) return;
    if (tasks == 1 || workers_.empty()) {
      run_alone([&] {
        for (std::int64_t task = 0; task < tasks; ++task) body(task, 0);
      });
      return;
    }
    start_shares(tasks);
    auto share = [&](int thread) {
      for (std::int64_t task; (task = next_task(thread)) >= 0;) body(task, thread);
    };
    run_on(Team::kWhoComes, share);
  }

  /// Inside run(): returns once every thread has come here.
  void barrier();

 private:
  struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

  /// Who must have called a region's body before it ends.
  enum class Team : std::uint8_t {
    kEveryThread,
    kWhoComes,  ///< the caller, and the workers that came before it was done
  };

  /// What is known of a region in one word: its number, whether workers may still come, how many came, how many of them
  /// have not left.
  struct Region {
    static constexpr std::uint64_t kClosed = std::uint64_t{1} << 31;
    static constexpr std::uint64_t kCame = std::uint64_t{1} << 16;
    static constexpr std::uint64_t kInside = 1;
    static std::uint64_t number(std::uint64_t region) { return region >> 32; }
    static std::uint64_t inside(std::uint64_t region) { return region & 0xffff; }
    static std::uint64_t came(std::uint64_t region) { return region >> 16 & 0x7fff; }
  };

  template <typename Body>
  void run_on(Team team, Body& body) {
    run_erased(
        team, [](void* b, int thread) { (*static_cast<std::remove_reference_t<Body>*>(b))(thread); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

  template <typename Body>
  void run_alone(Body&& body) {
    auto call = [&](int) { body(); };
    run_here([](void* b, int thread) { (*static_cast<decltype(call)*>(b))(thread); }, &call);
  }

  std::uint32_t spin_for_change(std::uint32_t seen) const;
  /// Takes a worker into the open region, unless it was there already: `last` is the number of the one it was in last.
  bool enter(std::uint64_t& last);
  void run_erased(Team team, void (*call)(void*, int), void* body);
  void run_here(void (*call)(void*, int), void* body);
  void start_shares(std::int64_t tasks);
  std::int64_t next_task(int thread);
  void work(int thread, int cpu);
  void call_guarded(int thread);

  const bool spins_;              // a worker between regions, before it sleeps
  const int spins_before_yield_;  // of a thread that waits for the others
  const bool pinned_;
  cpu_set_t affinity_before_ = {};  // of the thread that made the pool
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  alignas(64) std::atomic<std::uint64_t> region_{Region::kClosed};
  alignas(64) std::atomic<std::uint32_t> barrier_count_{0};
  std::atomic<std::uint32_t> barrier_phase_{0};
  void (*call_)(void*, int) = nullptr;
  void* body_ = nullptr;
  std::atomic<bool> stop_{false};
  std::mutex error_mutex_;
  std::exception_ptr error_;
  std::unique_ptr<Share[]> shares_;
  std::vector<std::thread> workers_;
};

}  // namespace drafthorse
