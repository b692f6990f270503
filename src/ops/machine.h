#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ops/exec_context.h"

namespace drafthorse {

struct CpuBudget;

/// Owns the threads and the choice of kernels of a process; `exec` borrows both.
class Machine {
 public:
  /// `threads` 0: what CpuBudget::threads advises. `pin`: as ThreadPool. `isa` empty: the best table this CPU runs;
  /// else a name kernel_table() knows.
  explicit Machine(int threads = 0, std::string_view isa = {}, bool pin = false);

  ExecContext& exec() { return exec_; }
  const char* isa() const { return exec_.kernels.name; }
  int threads() const { return pool_->threads(); }
  /// Why there are that many, for people.
  const std::string& threads_reason() const { return threads_reason_; }

 private:
  Machine(int threads, std::string_view isa, bool pin, const CpuBudget& budget);

  std::unique_ptr<ThreadPool> pool_;
  ExecContext exec_;
  std::string threads_reason_;
};

}  // namespace drafthorse
