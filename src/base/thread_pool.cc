#include "base/thread_pool.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <utility>

#include "base/check.h"
#include "base/cpu_features.h"
#include "base/float_env.h"

namespace drafthorse {
namespace {

// About a millisecond: longer than the gap between two regions of one token, shorter than anybody notices.
constexpr int kSpins = 20000;
// A thread that waits for others yields after this many spins, so that they progress when something else has their CPU.
constexpr int kSpinsBeforeYield = 2000;

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void pin_to(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

template <typename Done>
void spin_until(int spins_before_yield, Done done) {
  for (int spins = 0; !done(); ++spins) {
    if (spins < spins_before_yield) {
      _mm_pause();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace

// With more threads than CPUs whoever spins keeps another from the work that is waited for.
ThreadPool::ThreadPool(int threads, bool pin)
    : spins_(threads > usable_cpus() ? 0 : kSpins),
      spins_before_yield_(threads > usable_cpus() ? 0 : kSpinsBeforeYield) {
  DRAFTHORSE_CHECK(threads >= 1, "threads = " << threads);
  const std::vector<int> cpus = pin ? allowed_cpus() : std::vector<int>{};
  const auto cpu_of = [&](int thread) {
    return cpus.empty() ? -1 : cpus[static_cast<std::size_t>(thread) % cpus.size()];
  };
  shares_ = std::make_unique<Share[]>(static_cast<std::size_t>(threads));
  pin_to(cpu_of(0));
  for (int thread = 1; thread < threads; ++thread) {
    workers_.emplace_back([this, thread, cpu = cpu_of(thread)] { work(thread, cpu); });
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::work(int thread, int cpu) {
  pin_to(cpu);
  const FloatEnv environment;
  for (std::uint32_t seen = 0;;) {
    std::uint32_t now = generation_.load(std::memory_order_acquire);
    for (int spins = 0; now == seen && spins < spins_; ++spins) {
      _mm_pause();
      now = generation_.load(std::memory_order_acquire);
    }
    if (now == seen) {
      generation_.wait(seen, std::memory_order_acquire);
      now = generation_.load(std::memory_order_acquire);
    }
    if (stop_.load()) return;
    seen = now;
    call_guarded(thread);
    running_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::call_guarded(int thread) {
  try {
    call_(body_, thread);
  } catch (...) {
    const std::lock_guard<std::mutex> lock(error_mutex_);
    if (error_ == nullptr) error_ = std::current_exception();
  }
}

void ThreadPool::run_here(void (*call)(void*, int), void* body) {
  const FloatEnv environment;
  call(body, 0);
}

void ThreadPool::run_erased(void (*call)(void*, int), void* body) {
  if (workers_.empty()) return run_here(call, body);
  const FloatEnv environment;
  call_ = call;
  body_ = body;
  running_.store(static_cast<std::uint32_t>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  call_guarded(0);
  spin_until(spins_before_yield_, [&] { return running_.load(std::memory_order_acquire) == 0; });
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::barrier() {
  if (workers_.empty()) return;
  const std::uint32_t phase = barrier_phase_.load(std::memory_order_relaxed);
  if (barrier_count_.fetch_add(1, std::memory_order_acq_rel) == workers_.size()) {
    barrier_count_.store(0, std::memory_order_relaxed);
    barrier_phase_.store(phase + 1, std::memory_order_release);
    return;
  }
  spin_until(spins_before_yield_, [&] { return barrier_phase_.load(std::memory_order_acquire) != phase; });
}

void ThreadPool::start_shares(std::int64_t tasks) {
  const std::int64_t count = threads();
  for (std::int64_t i = 0; i < count; ++i) {
    shares_[static_cast<std::size_t>(i)].next.store(tasks * i / count, std::memory_order_relaxed);
    shares_[static_cast<std::size_t>(i)].end = tasks * (i + 1) / count;
  }
}

std::int64_t ThreadPool::next_task(int thread) {
  const int count = threads();
  for (int i = 0; i < count; ++i) {
    Share& share = shares_[static_cast<std::size_t>((thread + i) % count)];
    if (share.next.load(std::memory_order_relaxed) >= share.end) continue;
    const std::int64_t task = share.next.fetch_add(1, std::memory_order_relaxed);
    if (task < share.end) return task;
  }
  return -1;
}

}  // namespace drafthorse
