#pragma once

#include <cstdint>
#include <span>

namespace drafthorse {

/// What verification made of a block of n drafts: the first `accepted` of them stand, `next` follows. Row accepted of
/// the block's n + 1 rows chose `next`: it replaces the first draft that fell, or comes on top when none did.
struct Acceptance {
  std::int64_t accepted = 0;
  std::int32_t next = 0;
};

/// Drafts against the target's own choices, which do not depend on the drafts: a draft stands iff it is the same token.
/// `choices` has one entry more than `drafts`.
Acceptance accept_equal(std::span<const std::int32_t> choices, std::span<const std::int32_t> drafts);

/// Accepts a draft with probability min(1, p / q) when `coin` is uniform in [0, 1): p and q are the target's and the
/// draft's probability of the token. A token the target never emits falls; one the draft says it never draws stands if
/// the target could emit it.
inline bool accept_draft(float p, float q, double coin) {
  return coin * static_cast<double>(q) < static_cast<double>(p);
}

}  // namespace drafthorse
