#include "speculative/decoder.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "base/random.h"

namespace drafthorse {

Decoder::Decoder(Model& target, CacheSet& caches, DraftSession* session, std::span<const std::int64_t> taps,
                 const Sampler& sampler, std::int32_t anchor, const DecodeOptions& options)
    : target_(target),
      caches_(caches),
      session_(session),
      taps_(taps),
      anchor_(anchor),
      options_(options),
      verifier_(target, sampler, options.hash),
      position_(caches.offset()) {
  DRAFTHORSE_CHECK(session == nullptr || session->frontier() == position_,
                   "the caches hold " << position_ << " tokens, the session was told " << session->frontier());
}

Round Decoder::next(std::int64_t remaining) {
  DRAFTHORSE_CHECK(remaining >= 1, "a round with " << remaining << " tokens to go");
  const DraftProposal proposal = propose(remaining);
  CacheTransaction guess(caches_, 1 + std::ssize(proposal.tokens));
  const ForwardResult result = forward(proposal);
  const Acceptance verdict = verifier_.judge(result.hidden, position_ + 1, proposal);
  const std::int64_t kept = emit(proposal, verdict);

  // The session is told before anything is final: if it throws, `guess` undoes the round.
  if (session_ != nullptr) {
    const ConstRows features = result.taps.rows == 0 ? ConstRows{} : result.taps.slice(0, kept);
    session_->committed(std::span(rows_).first(static_cast<std::size_t>(kept)), features, position_);
  }
  guess.commit(kept);
  position_ += kept;
  anchor_ = emitted_.back();

  const std::int64_t emitted = std::ssize(emitted_);
  stats_.record(std::ssize(proposal.tokens), std::min(emitted, verdict.accepted), emitted);
  if (options_.hash) {
    for (std::int64_t i = 0; i < emitted; ++i) hash_chain_ = mix64(hash_chain_ + verifier_.row_hash(i));
  }
  return {emitted_, stopped_};
}

void Decoder::close() {
  if (session_ != nullptr) session_->settle(anchor_);
}

// One of the remaining tokens is always the target's own.
DraftProposal Decoder::propose(std::int64_t remaining) {
  const std::int64_t most = std::min(options_.depth, remaining - 1);
  if (session_ == nullptr || most <= 0) return {};
  const DraftProposal proposal = session_->propose(anchor_, most);
  DRAFTHORSE_CHECK(std::ssize(proposal.tokens) <= most, proposal.tokens.size()
                                                            << " drafts where " << most << " were asked for");
  return proposal;
}

ForwardResult Decoder::forward(const DraftProposal& proposal) {
  rows_.assign(1, anchor_);
  rows_.insert(rows_.end(), proposal.tokens.begin(), proposal.tokens.end());
  const SequenceRows sequence{rows_, &caches_};
  return target_.forward({{&sequence, 1}, taps_});
}

// Fills emitted_: the accepted drafts up to the first that ends the sequence, then, without one, the target's own
// token. Returns how many rows stay in the caches: those of all emitted tokens but the last. A stop id thus never
// enters a cache: a follow-up prompt may go on without it.
std::int64_t Decoder::emit(const DraftProposal& proposal, const Acceptance& verdict) {
  const auto accepted = proposal.tokens.first(static_cast<std::size_t>(verdict.accepted));
  const auto end = std::find_if(accepted.begin(), accepted.end(), [&](std::int32_t token) { return ends_with(token); });
  stopped_ = end != accepted.end();
  if (stopped_) {
    emitted_.assign(accepted.begin(), end + 1);
  } else {
    emitted_.assign(accepted.begin(), accepted.end());
    emitted_.push_back(verdict.next);
    stopped_ = ends_with(verdict.next);
  }
  return std::ssize(emitted_);
}

bool Decoder::ends_with(std::int32_t token) const { return is_stop(token) || (options_.ends && options_.ends(token)); }

bool Decoder::is_stop(std::int32_t token) const {
  return std::find(options_.stop_ids.begin(), options_.stop_ids.end(), token) != options_.stop_ids.end();
}

}  // namespace drafthorse
