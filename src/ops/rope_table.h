#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "tensor/aligned_buffer.h"

namespace drafthorse {

/// Cosines and sines of a rotary embedding (Su et al.: "RoFormer", 2021) for positions [0, positions), computed once,
/// in double precision, with the same bits on every machine, then rounded to float32.
class RopeTable {
 public:
  /// Angle of frequency i at position p: p * inverse_frequencies[i]. Cosines and sines are multiplied by `amplitude`.
  /// `interleaved`: pairs (2i, 2i + 1) rotate, else (i, i + half).
  RopeTable(std::span<const double> inverse_frequencies, double amplitude, std::int64_t positions, bool interleaved,
            ThreadPool& pool);

  /// Frequencies: half of the rotating dims.
  std::int64_t half() const { return half_; }
  std::int64_t positions() const { return positions_; }
  bool interleaved() const { return interleaved_; }
  /// [half()] at a position in [0, positions()).
  const float* cos(std::int64_t position) const { return cos_.as<float>() + position * half_; }
  const float* sin(std::int64_t position) const { return sin_.as<float>() + position * half_; }

 private:
  std::int64_t half_;
  std::int64_t positions_;
  bool interleaved_;
  AlignedBuffer cos_;
  AlignedBuffer sin_;
};

}  // namespace drafthorse
