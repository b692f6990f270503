#include "ops/rope_table.h"

#include <algorithm>

#include "base/check.h"
#include "ops/portable_math.h"

namespace drafthorse {

RopeTable::RopeTable(std::span<const double> inverse_frequencies, double amplitude, std::int64_t positions,
                     bool interleaved, ThreadPool& pool)
    : half_(static_cast<std::int64_t>(inverse_frequencies.size())), positions_(positions), interleaved_(interleaved) {
  DRAFTHORSE_CHECK(half_ >= 1 && positions >= 1, half_ << " frequencies, " << positions << " positions");
  const auto bytes = static_cast<std::size_t>(half_ * positions) * sizeof(float);
  cos_ = AlignedBuffer(bytes);
  sin_ = AlignedBuffer(bytes);
  constexpr std::int64_t kRun = 64;
  pool.parallel_for((positions + kRun - 1) / kRun, [&](std::int64_t run, int) {
    for (std::int64_t p = run * kRun; p < std::min(positions, (run + 1) * kRun); ++p) {
      for (std::int64_t i = 0; i < half_; ++i) {
        const SinCos at = portable_sin_cos(static_cast<double>(p) * inverse_frequencies[static_cast<std::size_t>(i)]);
        cos_.as<float>()[p * half_ + i] = static_cast<float>(amplitude * at.cos);
        sin_.as<float>()[p * half_ + i] = static_cast<float>(amplitude * at.sin);
      }
    }
  });
}

}  // namespace drafthorse
