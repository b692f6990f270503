#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cache/cache.h"
#include "model/model.h"
#include "sampling/sampler.h"
#include "speculative/draft_stats.h"
#include "speculative/drafter.h"
#include "speculative/verifier.h"

namespace drafthorse {

/// How a sequence is decoded.
struct DecodeOptions {
  std::int64_t depth = 0;                  ///< drafts per round, at most; 0: plain rounds that still feed the session
  std::span<const std::int32_t> stop_ids;  ///< end of sequence; empty: none
  bool hash = false;                       ///< chain the hash of every emitted token's logit row
  /// Asked once for every emitted token that is no stop id, in order; true: the sequence ends with it (a stop string is
  /// complete). May be empty.
  std::function<bool(std::int32_t)> ends = {};
};

/// One round's emission. Valid until the next round.
struct Round {
  std::span<const std::int32_t> tokens;  ///< at least one; a stop id is always the last
  bool stopped = false;                  ///< the last token is a stop id, or DecodeOptions::ends said so
};

/// Generates one sequence round by round. Between rounds every target cache holds [0, position()) and the anchor, known
/// but not forwarded, sits at position().
///
/// A round: the session proposes, one fused forward of anchor + drafts inside a CacheTransaction, the sampler judges
/// each row, the accepted run is committed and reported once. An exception leaves the caches as they were before the
/// round. After warm-up only stats().lengths grows.
class Decoder {
 public:
  /// `caches` hold [0, P); `anchor` is the token at slot P. `session` may be null (plain decoding) and otherwise has
  /// been told [0, P). All references outlive the decoder.
  Decoder(Model& target, CacheSet& caches, DraftSession* session, std::span<const std::int64_t> taps,
          const Sampler& sampler, std::int32_t anchor, const DecodeOptions& options);

  /// One round; `remaining` >= 1 tokens may still be emitted. Emits at most `remaining`.
  Round next(std::int64_t remaining);
  /// Levels the session with the caches.
  void close();

  std::int64_t position() const { return position_; }
  const DraftStats& stats() const { return stats_; }
  /// Chained over emitted tokens, 0 before the first: chain = mix64(chain + row hash).
  std::uint64_t logits_hash() const { return hash_chain_; }

 private:
  DraftProposal propose(std::int64_t remaining);
  ForwardResult forward(const DraftProposal& proposal);
  std::int64_t emit(const DraftProposal& proposal, const Acceptance& verdict);
  bool is_stop(std::int32_t token) const;
  bool ends_with(std::int32_t token) const;

  Model& target_;
  CacheSet& caches_;
  DraftSession* session_;
  std::span<const std::int64_t> taps_;
  std::int32_t anchor_;
  DecodeOptions options_;
  Verifier verifier_;
  std::int64_t position_;
  DraftStats stats_;
  std::uint64_t hash_chain_ = 0;
  std::vector<std::int32_t> rows_;     // anchor + drafts of this round
  std::vector<std::int32_t> emitted_;  // of this round
  bool stopped_ = false;               // the last emitted token ends the sequence
};

}  // namespace drafthorse
