#pragma once

#include <cstdint>
#include <vector>

namespace drafthorse {

/// What drafting did in one request. `drafted` counts tokens that were sent to the target, `accepted` those of them
/// that were emitted.
struct DraftStats {
  std::int64_t rounds = 0;           ///< target passes after prefill
  std::int64_t drafting_rounds = 0;  ///< rounds that verified at least one draft
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::vector<std::int64_t> lengths;               ///< tokens emitted per round
  std::vector<std::int64_t> drafted_by_position;   ///< [i]: rounds whose draft had a token at position i
  std::vector<std::int64_t> accepted_by_position;  ///< [i]: rounds whose draft at position i was accepted

  /// accepted / drafting_rounds, 0 without any.
  double mean_accepted() const {
    return drafting_rounds == 0 ? 0.0 : static_cast<double>(accepted) / static_cast<double>(drafting_rounds);
  }
  void record(std::int64_t drafted_now, std::int64_t accepted_now, std::int64_t emitted);
};

}  // namespace drafthorse
