#include "speculative/draft_stats.h"

#include <algorithm>
#include <cstddef>

namespace drafthorse {

void DraftStats::record(std::int64_t drafted_now, std::int64_t accepted_now, std::int64_t emitted) {
  ++rounds;
  lengths.push_back(emitted);
  if (drafted_now == 0) return;
  ++drafting_rounds;
  drafted += drafted_now;
  accepted += accepted_now;
  const auto positions = std::max(drafted_by_position.size(), static_cast<std::size_t>(drafted_now));
  drafted_by_position.resize(positions);
  accepted_by_position.resize(positions);
  for (std::int64_t i = 0; i < drafted_now; ++i) ++drafted_by_position[static_cast<std::size_t>(i)];
  for (std::int64_t i = 0; i < accepted_now; ++i) ++accepted_by_position[static_cast<std::size_t>(i)];
}

}  // namespace drafthorse
