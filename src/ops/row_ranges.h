#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/exec_context.h"

namespace drafthorse {

/// Values below which forking a region costs more than it saves.
inline constexpr std::int64_t kForkValues = 16384;

/// Calls body(begin, end) for ranges that make up [0, count), on several threads when count * values_each is worth it.
/// Only for work whose result does not depend on where the ranges are cut.
template <typename Body>
void for_ranges(const ExecContext& exec, std::int64_t count, std::int64_t values_each, Body&& body) {
  if (count <= 0) return;
  const std::int64_t forks = count * values_each / kForkValues;
  const std::int64_t tasks = std::clamp<std::int64_t>(forks, 1, std::min<std::int64_t>(count, 4 * exec.pool.threads()));
  exec.pool.parallel_for(tasks,
                         [&](std::int64_t task, int) { body(count * task / tasks, count * (task + 1) / tasks); });
}

}  // namespace drafthorse
