#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "sampling/sampler.h"
#include "speculative/drafter.h"
#include "tensor/arena.h"
#include "tensor/rows.h"

namespace drafthorse {

/// Judges a block by the target's own rows. Asks the target for whole logit rows only when the sampler needs them.
class Verifier {
 public:
  /// `target` and `sampler` outlive the verifier. `hash`: row_hash() is wanted.
  Verifier(Model& target, const Sampler& sampler, bool hash) : target_(target), sampler_(sampler), hash_(hash) {}

  /// `hidden` are the target's rows of the anchor and of the proposal's n drafts, in order; row i chooses the token of
  /// slot first_slot + i, so drafts[i] is judged by row i. n = 0: a plain round, `next` is the only choice.
  Acceptance judge(ConstRows hidden, std::int64_t first_slot, const DraftProposal& proposal);
  /// KernelTable::logits_hash of row i of the last judge().
  std::uint64_t row_hash(std::int64_t i) const { return hashes_[static_cast<std::size_t>(i)]; }

 private:
  Model& target_;
  const Sampler& sampler_;
  bool hash_;
  std::vector<std::int32_t> choices_;
  std::vector<std::uint64_t> hashes_;
  Arena arena_;
  SamplerScratch scratch_;
};

}  // namespace drafthorse
