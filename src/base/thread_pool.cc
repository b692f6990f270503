#include "base/thread_pool.h"

#include <immintrin.h>
#include <pthread.h>

#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/cpu_budget.h"
#include "base/float_env.h"

namespace drafthorse {
namespace {

// Longer than the gap between two regions of one token, shorter than anybody notices. The clock is read once in a
// while: a pause takes 40 cycles on one processor and 140 on another.
constexpr std::chrono::milliseconds kSpinTime{1};
constexpr int kSpinsPerLook = 64;
// A thread that waits for others yields after this many spins, so that they progress when something else has their CPU.
constexpr int kSpinsBeforeYield = 2000;

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
ThreadPool::ThreadPool(int threads, bool pin) : ThreadPool(threads, pin, cpu_budget()) {}

ThreadPool::ThreadPool(int threads, bool pin, const CpuBudget& budget)
    : spins_(threads <= budget.concurrent()), spins_before_yield_(spins_ ? kSpinsBeforeYield : 0), pinned_(pin) {
  DRAFTHORSE_CHECK(threads >= 1, "threads = " << threads);
  const std::vector<int>& cpus = budget.cpus;
  const auto cpu_of = [&](int thread) {
    return !pin || cpus.empty() ? -1 : cpus[static_cast<std::size_t>(thread) % cpus.size()];
  };
  shares_ = std::make_unique<Share[]>(static_cast<std::size_t>(threads));
  if (pinned_) ::pthread_getaffinity_np(::pthread_self(), sizeof affinity_before_, &affinity_before_);
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
  if (pinned_) ::pthread_setaffinity_np(::pthread_self(), sizeof affinity_before_, &affinity_before_);
}

std::uint32_t ThreadPool::spin_for_change(std::uint32_t seen) const {
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int spins = 0; spins < kSpinsPerLook; ++spins) {
      const std::uint32_t now = generation_.load(std::memory_order_acquire);
      if (now != seen) return now;
      _mm_pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return seen;
}

void ThreadPool::work(int thread, int cpu) {
  pin_to(cpu);
  const FloatEnv environment;
  std::uint64_t last = 0;
  for (std::uint32_t seen = 0;;) {
    std::uint32_t now = spins_ ? spin_for_change(seen) : generation_.load(std::memory_order_acquire);
    if (now == seen) {
      generation_.wait(seen, std::memory_order_acquire);
      now = generation_.load(std::memory_order_acquire);
    }
    if (stop_.load()) return;
    seen = now;
    if (!enter(last)) continue;
    call_guarded(thread);
    region_.fetch_sub(Region::kInside, std::memory_order_release);
  }
}

bool ThreadPool::enter(std::uint64_t& last) {
  std::uint64_t region = region_.load(std::memory_order_relaxed);
  do {
    if ((region & Region::kClosed) != 0 || Region::number(region) == last) return false;
  } while (!region_.compare_exchange_weak(region, region + Region::kCame + Region::kInside, std::memory_order_acquire,
                                          std::memory_order_relaxed));
  last = Region::number(region);
  return true;
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

void ThreadPool::run_erased(Team team, void (*call)(void*, int), void* body) {
  if (workers_.empty()) return run_here(call, body);
  const FloatEnv environment;
  call_ = call;
  body_ = body;
  // Open before the workers are told: whoever hears of it may come.
  const std::uint64_t number = Region::number(region_.load(std::memory_order_relaxed)) + 1;
  region_.store(number << 32, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  call_guarded(0);
  if (team == Team::kEveryThread) {
    spin_until(spins_before_yield_,
               [&] { return Region::came(region_.load(std::memory_order_relaxed)) == workers_.size(); });
  }
  // Nothing is left to do for a worker that another process keeps from its CPU, for milliseconds perhaps.
  region_.fetch_or(Region::kClosed, std::memory_order_relaxed);
  spin_until(spins_before_yield_, [&] { return Region::inside(region_.load(std::memory_order_acquire)) == 0; });
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
