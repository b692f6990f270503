#pragma once

#include <memory>
#include <string_view>

#include "ops/exec_context.h"

namespace drafthorse {

/// Owns the threads and the choice of kernels of a process; `exec` borrows both.
class Machine {
 public:
  /// `threads` 0: as many as the process may use. `isa` empty: the best table this CPU runs; else a name kernel_table()
  /// knows.
  explicit Machine(int threads = 0, std::string_view isa = {}, bool pin = false);

  ExecContext& exec() { return exec_; }
  const char* isa() const { return exec_.kernels.name; }
  int threads() const { return pool_->threads(); }

 private:
  std::unique_ptr<ThreadPool> pool_;
  ExecContext exec_;
};

}  // namespace drafthorse
