#include "ops/machine.h"

#include "base/cpu_budget.h"

namespace drafthorse {

// The budget is asked for once, before the pool binds this thread to a CPU.
Machine::Machine(int threads, std::string_view isa, bool pin) : Machine(threads, isa, pin, cpu_budget()) {}

Machine::Machine(int threads, std::string_view isa, bool pin, const CpuBudget& budget)
    : pool_(std::make_unique<ThreadPool>(threads > 0 ? threads : budget.threads(), pin, budget)),
      exec_{*pool_, kernel_table(isa)} {
  if (threads <= 0) {
    threads_reason_ = budget.reason();
  } else if (threads > budget.concurrent()) {
    threads_reason_ = "more than can run at once: " + budget.reason();
  } else {
    threads_reason_ = "as asked";
  }
}

}  // namespace drafthorse
