#pragma once

#include "base/thread_pool.h"
#include "kernels/kernel_table.h"

namespace drafthorse {

/// The machine as an argument: who computes (threads) and how (kernels). One per process, shared by target and draft.
struct ExecContext {
  ThreadPool& pool;
  const KernelTable& kernels;
};

}  // namespace drafthorse
