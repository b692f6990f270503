#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "ops/exec_context.h"
#include "tensor/aligned_buffer.h"

namespace drafthorse {

/// How fast this machine reads memory: the limit of a pass that must read every weight. Measured here and not looked
/// up, and beside what it is compared with, because it drifts.
class ReadBandwidth {
 public:
  /// Takes a buffer several times the size of the last-level cache. `exec` outlives this.
  explicit ReadBandwidth(ExecContext& exec);

  /// Reads the buffer once with 1, 2, 4 and 8 streams per thread in lock-step.
  void measure();
  /// The best of the four medians so far, in 10^9 bytes a second. 0 before the first measure().
  double gb_per_second() const;

 private:
  static constexpr std::array<int, 4> kStreams = {1, 2, 4, 8};
  double read_once(int streams);

  ExecContext& exec_;
  AlignedBuffer buffer_;
  std::array<std::vector<double>, 4> rates_;
};

}  // namespace drafthorse
