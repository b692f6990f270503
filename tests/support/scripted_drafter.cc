#include "support/scripted_drafter.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace drafthorse {
namespace {

// A script from the rule "is the i-th draft (from 0) of this turn right?".
template <typename IsRight>
DraftScript along(std::vector<std::int32_t> run, std::int64_t vocab_width, IsRight is_right) {
  return [run = std::move(run), vocab_width, is_right](const ScriptedTurn& turn) {
    std::vector<std::int32_t> drafts;
    for (std::int64_t i = 0; i < turn.max; ++i) {
      const auto slot = static_cast<std::size_t>(turn.anchor_slot + 1 + i);
      const std::int32_t token = slot < run.size() ? run[slot] : 0;
      const bool right = slot < run.size() && is_right(turn, i);
      drafts.push_back(right ? token : static_cast<std::int32_t>((token + 1) % vocab_width));
    }
    return drafts;
  };
}

}  // namespace

DraftScript always_right(std::vector<std::int32_t> run, std::int64_t vocab_width) {
  return along(std::move(run), vocab_width, [](const ScriptedTurn&, std::int64_t) { return true; });
}

DraftScript always_wrong(std::vector<std::int32_t> run, std::int64_t vocab_width) {
  return along(std::move(run), vocab_width, [](const ScriptedTurn&, std::int64_t) { return false; });
}

DraftScript alternating(std::vector<std::int32_t> run, std::int64_t vocab_width) {
  return along(std::move(run), vocab_width,
               [](const ScriptedTurn& turn, std::int64_t i) { return (turn.anchor_slot + i) % 2 == 0; });
}

DraftScript accept_counts(std::vector<std::int32_t> run, std::vector<std::int64_t> counts, std::int64_t vocab_width) {
  return along(std::move(run), vocab_width, [counts = std::move(counts)](const ScriptedTurn& turn, std::int64_t i) {
    return i < counts[static_cast<std::size_t>(turn.round) % counts.size()];
  });
}

DraftScript half_dropped(std::vector<std::int32_t> run, std::int64_t vocab_width) {
  return [whole = always_right(std::move(run), vocab_width)](const ScriptedTurn& turn) {
    std::vector<std::int32_t> drafts = whole(turn);
    drafts.resize(drafts.size() / 2);
    return drafts;
  };
}

void ScriptedSession::committed(std::span<const std::int32_t> tokens, ConstRows, std::int64_t slot) {
  DRAFTHORSE_CHECK(slot <= frontier_,
                   "context gap: the run starts at slot " << slot << ", the first slot missing is " << frontier_);
  if (std::exchange(fail_next_commit, false)) throw Error("scripted session failure");
  runs.push_back({slot, {tokens.begin(), tokens.end()}});
  frontier_ = std::max(frontier_, slot + std::ssize(tokens));
}

DraftProposal ScriptedSession::propose(std::int32_t, std::int64_t max) {
  tokens_ = script_({std::ssize(proposals), frontier_, max});
  if (std::ssize(tokens_) > max) tokens_.resize(static_cast<std::size_t>(max));
  proposals.push_back(tokens_);
  return {tokens_, nullptr};
}

void ScriptedSession::settle(std::int32_t next) { settled.push_back(next); }

std::unique_ptr<DraftSession> ScriptedDrafter::open(CacheSet& caches, const Sampler&) {
  return std::make_unique<ScriptedSession>(script_, caches.offset());
}

}  // namespace drafthorse
