#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "bench/read_bandwidth.h"
#include "cache/cache.h"
#include "model/model.h"
#include "ops/exec_context.h"

namespace drafthorse {

/// Positions that are cached when a pass is timed.
inline constexpr std::int64_t kBenchContext = 512;

/// Times whole passes of a target over a few rows, as verifying a draft makes them: forward at a context of
/// kBenchContext, head and argmax of every row. Nothing stays in the caches, so every pass is the same.
class PassTimer {
 public:
  /// Fills the caches. The target must hold kBenchContext + kMaxRows positions.
  explicit PassTimer(Model& target);

  static constexpr std::int64_t kMaxRows = 16;
  /// Seconds of one pass over `rows` rows, 1 to kMaxRows.
  double time(std::int64_t rows);

 private:
  Model& target_;
  std::unique_ptr<CacheSet> caches_;
  std::vector<std::int32_t> ids_;
  std::vector<std::int32_t> argmax_;
};

struct PassReport {
  std::map<std::int64_t, double> milliseconds;  ///< by rows; medians
  double read_gb_per_second = 0.0;
  std::int64_t rounds = 0;  ///< measurements behind each median
};

/// Passes of 1 to 16 rows (fewer row counts where passes are slow) and readings of the memory in turn, until `seconds`
/// are spent; each at least three times.
PassReport measure_passes(Model& target, ExecContext& exec, double seconds);

}  // namespace drafthorse
