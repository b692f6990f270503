#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/cache.h"
#include "model/draft_model.h"
#include "sampling/distribution.h"
#include "sampling/sampler.h"
#include "tensor/rows.h"

namespace drafthorse {

/// Draft tokens for the slots after the anchor, with what verification needs to know of them.
struct DraftProposal {
  std::span<const std::int32_t> tokens;  ///< empty: decode this round plainly
  /// Under rejection: row i is what tokens[i] was drawn from. Null: the tokens were not drawn but picked (greedy,
  /// coupled, look-ups), each with probability 1.
  const Distribution* proposed = nullptr;
};

/// Per request. Follows what enters the target's caches and proposes blocks. Every call is about slots: absolute
/// positions.
class DraftSession {
 public:
  virtual ~DraftSession() = default;
  /// A run now sits in the target's caches: tokens[i] at slot + i with feature row i (the session's own taps, side by
  /// side). Runs come in slot order and leave no hole (a hole fails a CHECK naming both slots); rows the session
  /// already has are skipped. The rows are copied.
  virtual void committed(std::span<const std::int32_t> tokens, ConstRows features, std::int64_t slot) = 0;
  /// Up to `max` tokens following `anchor`, which sits at the first slot not yet committed. The proposal lives until
  /// the next call.
  virtual DraftProposal propose(std::int32_t anchor, std::int64_t max) = 0;
  /// Writes everything buffered: the draft caches end level with the committed slots. `next` is the token right after
  /// them.
  virtual void settle(std::int32_t next) = 0;
  /// First slot not yet reported.
  virtual std::int64_t frontier() const = 0;
};

/// Per model: opens sessions.
class Drafter {
 public:
  virtual ~Drafter() = default;
  /// The deepest draft it can ever produce.
  virtual std::int64_t draft_limit() const = 0;
  /// Layers of the target whose outputs are the session's features.
  virtual std::span<const std::int64_t> taps() const = 0;
  /// Caches for one sequence; they live with the sequence, beside the target's.
  virtual std::unique_ptr<CacheSet> make_caches() = 0;
  /// A session over draft caches that hold [0, offset). `sampler` and `caches` outlive it.
  virtual std::unique_ptr<DraftSession> open(CacheSet& caches, const Sampler& sampler) = 0;
};

}  // namespace drafthorse
