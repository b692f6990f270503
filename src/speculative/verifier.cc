#include "speculative/verifier.h"

#include <cstddef>

#include "base/check.h"

namespace drafthorse {

Acceptance Verifier::judge(ConstRows hidden, std::int64_t first_slot, const DraftProposal& proposal) {
  const std::int64_t n = std::ssize(proposal.tokens);
  DRAFTHORSE_CHECK(hidden.rows == n + 1, hidden.rows << " rows for " << n << " drafts");
  LogitsSink sink;
  if (hash_) {
    hashes_.resize(static_cast<std::size_t>(n + 1));
    sink.hash = hashes_.data();
  }
  if (!sampler_.needs_logits()) {
    choices_.resize(static_cast<std::size_t>(n + 1));
    sink.argmax = choices_.data();
    target_.unembed(hidden, sink);
    return accept_equal(choices_, proposal.tokens);
  }
  arena_.reset();
  sink.logits = arena_.rows(n + 1, sampler_.vocab_width());
  target_.unembed(hidden, sink);
  return sampler_.verify(sink.logits, first_slot, proposal.tokens, proposal.proposed, scratch_);
}

}  // namespace drafthorse
