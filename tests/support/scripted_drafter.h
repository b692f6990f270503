#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "speculative/drafter.h"

namespace drafthorse {

/// What a scripted session knows when it proposes.
struct ScriptedTurn {
  std::int64_t round = 0;        ///< proposals made before this one
  std::int64_t anchor_slot = 0;  ///< the proposal's first token stands for slot anchor_slot + 1
  std::int64_t max = 0;
};

/// Tokens to propose for slots anchor_slot + 1, ..; more than max are cut.
using DraftScript = std::function<std::vector<std::int32_t>(const ScriptedTurn&)>;

/// Scripts over a known run: run[s] is the token the target has at slot s (prompt and output together). Past its end
/// every draft is wrong. A wrong token is the right one's neighbour within the vocabulary.
DraftScript always_right(std::vector<std::int32_t> run, std::int64_t vocab_width);
DraftScript always_wrong(std::vector<std::int32_t> run, std::int64_t vocab_width);
/// Wrong at every second slot.
DraftScript alternating(std::vector<std::int32_t> run, std::int64_t vocab_width);
/// Round k proposes counts[k mod size] right tokens, then wrong ones up to max.
DraftScript accept_counts(std::vector<std::int32_t> run, std::vector<std::int64_t> counts, std::int64_t vocab_width);
/// Makes up max right tokens and hands out only half of them, rounded down, as a confidence cut-off would.
DraftScript half_dropped(std::vector<std::int32_t> run, std::int64_t vocab_width);

/// Proposes from a script, needs neither features nor caches, and checks how it is called: runs without holes and with
/// the tokens it was told.
class ScriptedSession : public DraftSession {
 public:
  struct Run {
    std::int64_t slot;
    std::vector<std::int32_t> tokens;
    bool operator==(const Run&) const = default;
  };

  /// `frontier`: slots known from the start.
  ScriptedSession(DraftScript script, std::int64_t frontier) : script_(std::move(script)), frontier_(frontier) {}

  void committed(std::span<const std::int32_t> tokens, ConstRows features, std::int64_t slot) override;
  DraftProposal propose(std::int32_t anchor, std::int64_t max) override;
  void settle(std::int32_t next) override;
  std::int64_t frontier() const override { return frontier_; }

  std::vector<Run> runs;                             ///< what committed() was told
  std::vector<std::vector<std::int32_t>> proposals;  ///< what was handed out
  std::vector<std::int32_t> settled;                 ///< what settle() was told
  bool fail_next_commit = false;                     ///< committed() throws Error once

 private:
  DraftScript script_;
  std::int64_t frontier_;
  std::vector<std::int32_t> tokens_;
};

/// Opens scripted sessions, for whoever wants a drafter: no taps, no caches.
class ScriptedDrafter : public Drafter {
 public:
  ScriptedDrafter(DraftScript script, std::int64_t draft_limit) : script_(std::move(script)), limit_(draft_limit) {}

  std::int64_t draft_limit() const override { return limit_; }
  std::span<const std::int64_t> taps() const override { return {}; }
  std::unique_ptr<CacheSet> make_caches() override { return std::make_unique<CacheSet>(); }
  std::unique_ptr<DraftSession> open(CacheSet& caches, const Sampler& sampler) override;

 private:
  DraftScript script_;
  std::int64_t limit_;
};

}  // namespace drafthorse
