#include "sampling/acceptance.h"

#include <cstddef>

#include "base/check.h"

namespace drafthorse {

Acceptance accept_equal(std::span<const std::int32_t> choices, std::span<const std::int32_t> drafts) {
  DRAFTHORSE_CHECK(choices.size() == drafts.size() + 1, choices.size() << " rows for " << drafts.size() << " drafts");
  std::size_t accepted = 0;
  while (accepted < drafts.size() && choices[accepted] == drafts[accepted]) ++accepted;
  return {static_cast<std::int64_t>(accepted), choices[accepted]};
}

}  // namespace drafthorse
