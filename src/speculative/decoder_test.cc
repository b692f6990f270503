#include "speculative/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "speculative/dflash_drafter.h"
#include "support/scripted_decode.h"
#include "support/scripted_drafter.h"
#include "support/scripted_target.h"
#include "support/test_machine.h"

namespace drafthorse {
namespace {

using Ids = std::vector<std::int32_t>;
using Map = std::map<std::int32_t, std::int32_t>;

// Proposes the same tokens whatever happens.
DraftScript fixed(Ids drafts) {
  return [drafts](const ScriptedTurn&) { return drafts; };
}

DecodeRequest request(Ids prompt, std::int64_t budget, std::int64_t depth, Ids stop_ids = {}) {
  DecodeRequest out;
  out.prompt = std::move(prompt);
  out.budget = budget;
  out.depth = depth;
  out.stop_ids = std::move(stop_ids);
  return out;
}

// One round of a scripted target that follows `map` from token 1 at slot 0, with the given drafts.
struct OneRound {
  OneRound(const Map& map, const Ids& drafts, Ids stop_ids = {}, std::int64_t remaining = 100)
      : target(successor_rule(map)),
        drafter(fixed(drafts), 16),
        run(target, &drafter, request({1}, remaining, 16, stop_ids)) {
    run.step();
  }
  const Ids& tokens() const { return run.decoded().tokens; }
  const DraftStats& stats() { return run.decoder().stats(); }

  ScriptedTarget target;
  ScriptedDrafter drafter;
  SteppedDecode run;
};

TEST(Decoder, ABlockThatIsRightGivesOneTokenMore) {
  OneRound round({{1, 2}, {2, 3}, {3, 4}, {4, 5}}, {2, 3, 4});
  EXPECT_EQ(round.tokens(), (Ids{2, 3, 4, 5}));
  EXPECT_EQ(round.stats().accepted, 3);
  EXPECT_EQ(round.run.decoder().position(), 4);
  EXPECT_EQ(recording(round.run.caches()).tokens, (Ids{1, 2, 3, 4}));
  EXPECT_EQ(round.target.calls, (std::vector<ScriptedTarget::Call>{{0, 4}}));
}

TEST(Decoder, AWrongDraftIsReplacedByTheTargetsToken) {
  OneRound round({{1, 2}, {2, 3}}, {2, 7});
  EXPECT_EQ(round.tokens(), (Ids{2, 3}));
  EXPECT_EQ(round.stats().accepted, 1);
  EXPECT_EQ(round.stats().drafted, 2);
  EXPECT_EQ(recording(round.run.caches()).tokens, (Ids{1, 2}));
}

TEST(Decoder, NothingAcceptedIsAPlainRound) {
  OneRound round({{1, 2}, {2, 3}}, {5, 3, 3});
  EXPECT_EQ(round.tokens(), (Ids{2}));
  EXPECT_EQ(round.stats().accepted, 0);
  EXPECT_EQ(recording(round.run.caches()).tokens, (Ids{1}));
}

TEST(Decoder, AnAcceptedStopEndsTheRunAndStaysOutOfTheCaches) {
  OneRound round({{1, 2}, {2, 6}, {6, 3}}, {2, 6}, {6});
  EXPECT_EQ(round.tokens(), (Ids{2, 6}));  // nothing on top
  EXPECT_TRUE(round.run.decoded().stopped);
  EXPECT_EQ(round.stats().accepted, 2);
  EXPECT_EQ(recording(round.run.caches()).tokens, (Ids{1, 2}));
}

TEST(Decoder, AStopEndsTheRunWhereverItStands) {
  const Map map = {{1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}};
  const Ids all = {2, 3, 4, 5};
  for (std::int64_t at = 0; at < 4; ++at) {  // the first, middle and last draft, and the bonus
    const auto end = all.begin() + at + 1;
    OneRound round(map, {2, 3, 4}, {7, *(end - 1)});
    EXPECT_EQ(round.tokens(), Ids(all.begin(), end));
    EXPECT_TRUE(round.run.decoded().stopped);
    EXPECT_EQ(round.stats().accepted, std::min<std::int64_t>(at + 1, 3));
    EXPECT_EQ(round.stats().drafted, 3);
    Ids cached = {1};
    cached.insert(cached.end(), all.begin(), end - 1);
    EXPECT_EQ(recording(round.run.caches()).tokens, cached);
    EXPECT_FALSE(recording(round.run.caches()).is_open());
  }
}

TEST(Decoder, AStopThatWasOnlyDraftedDoesNotStop) {
  OneRound round({{1, 2}, {2, 3}}, {2, 7, 7}, {7});
  EXPECT_EQ(round.tokens(), (Ids{2, 3}));
  EXPECT_FALSE(round.run.decoded().stopped);
}

TEST(Decoder, ACallersOwnEndActsLikeAStopAndIsAskedOnceAToken) {
  const Map map = {{1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}};
  for (std::int32_t last = 2; last <= 5; ++last) {
    ScriptedTarget target(successor_rule(map));
    const auto caches = target.make_caches();
    const Sampler sampler({}, AcceptMode::kCoupled, 0, 8, test_exec());
    ScriptedSession session(fixed({2, 3, 4}), 0);
    Ids asked;
    DecodeOptions options;
    options.depth = 3;
    options.ends = [&](std::int32_t token) {
      asked.push_back(token);
      return token == last;
    };
    Decoder decoder(target, *caches, &session, {}, sampler, 1, options);
    const Round round = decoder.next(100);
    EXPECT_TRUE(round.stopped);
    EXPECT_EQ(round.tokens.back(), last);
    EXPECT_EQ(asked, Ids(round.tokens.begin(), round.tokens.end()));
    EXPECT_EQ(caches->offset(), last - 1);  // the last token's own row is not kept
  }
}

TEST(Decoder, PlainDecodingIsOneForwardAToken) {
  ScriptedTarget target(successor_rule({{1, 2}, {2, 3}, {3, 4}, {4, 7}}));
  SteppedDecode run(target, nullptr, request({0, 1}, 10, 4, {7}));
  EXPECT_EQ(run.finish().tokens, (Ids{2, 3, 4, 7}));
  EXPECT_EQ(target.calls, (std::vector<ScriptedTarget::Call>{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}}));
  EXPECT_EQ(target.whole_rows, 0);
  EXPECT_EQ(target.tap_rows, 0);
}

TEST(Decoder, DepthZeroFeedsTheSessionWithoutAskingIt) {
  ScriptedTarget target(successor_rule({{1, 2}, {2, 3}, {3, 4}}));
  ScriptedDrafter drafter(fixed({7, 7}), 16);
  SteppedDecode run(target, &drafter, request({0, 1}, 3, 0));
  EXPECT_EQ(run.finish().tokens, (Ids{2, 3, 4}));
  auto& session = dynamic_cast<ScriptedSession&>(run.session());
  EXPECT_TRUE(session.proposals.empty());
  EXPECT_EQ(session.runs, (std::vector<ScriptedSession::Run>{{0, {0}}, {1, {1}}, {2, {2}}, {3, {3}}}));
  EXPECT_EQ(session.settled, (Ids{4}));
  EXPECT_EQ(run.decoder().stats().drafting_rounds, 0);
}

TEST(Decoder, TheCommittedRunIsReportedOnce) {
  OneRound round({{1, 2}, {2, 3}, {3, 4}}, {2, 3, 7});
  auto& session = dynamic_cast<ScriptedSession&>(round.run.session());
  EXPECT_EQ(session.runs, (std::vector<ScriptedSession::Run>{{0, {1, 2, 3}}}));
}

TEST(Decoder, AWrongDrafterNeverShowsInTheOutput) {
  // The draft says 6 where the target says 4.
  const Map truth = {{1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 7}};
  Map belief = truth;
  belief[3] = 6;
  ScriptedTarget target(successor_rule(truth));
  ScriptedDraft draft(successor_draft(belief), 4);
  DFlashDrafter drafter(draft);
  SteppedDecode run(target, &drafter, request({1}, 20, 3, {7}));
  const Decoded decoded = run.finish();
  EXPECT_EQ(decoded.tokens, (Ids{2, 3, 4, 5, 7}));
  EXPECT_LT(decoded.stats.accepted, decoded.stats.drafted);
  EXPECT_EQ(recording(run.caches()).tokens, (Ids{1, 2, 3, 4, 5}));
  EXPECT_EQ(recording(run.draft_caches()).tokens, (Ids{2, 3, 4, 5, 7}));
}

TEST(Decoder, AReaderThatLeavesFindsEverythingLevel) {
  ScriptedTarget target(hashed_rule(2, 5));
  ScriptedDraft draft(successor_draft({{1, 2}}), 4);
  DFlashDrafter drafter(draft);
  SteppedDecode run(target, &drafter, request({3, 1, 2}, 50, 3));
  run.step();
  run.step();
  run.decoder().close();
  EXPECT_EQ(run.caches().offset(), run.decoder().position());
  EXPECT_EQ(run.draft_caches().offset(), run.decoder().position());
  EXPECT_FALSE(recording(run.caches()).is_open());
  EXPECT_FALSE(recording(run.draft_caches()).is_open());
}

TEST(Decoder, ARoundNeverEmitsMoreThanRemains) {
  const Map map = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}};
  for (std::int64_t budget = 1; budget <= 9; ++budget) {
    ScriptedTarget target(successor_rule(map));
    ScriptedDrafter drafter(
        [](const ScriptedTurn& turn) {
          Ids drafts;
          for (std::int64_t i = 1; i <= turn.max; ++i)
            drafts.push_back(static_cast<std::int32_t>((turn.anchor_slot + i) % 6));
          return drafts;
        },
        4);
    SteppedDecode run(target, &drafter, request({0}, budget, 4));
    std::int64_t emitted = 0;
    while (!run.done()) {
      run.step();
      ASSERT_LE(std::ssize(run.decoded().tokens), budget);
      EXPECT_GT(std::ssize(run.decoded().tokens), emitted);
      emitted = std::ssize(run.decoded().tokens);
    }
    EXPECT_EQ(emitted, budget);
    EXPECT_LE(std::ssize(target.calls), (budget + 4) / 5);  // every full round gives five
  }
}

TEST(Decoder, ASessionThatOverdoesItIsCaught) {
  class Greedy : public ScriptedSession {
   public:
    Greedy() : ScriptedSession(fixed({}), 0) {}
    DraftProposal propose(std::int32_t, std::int64_t) override { return {tokens, nullptr}; }
    Ids tokens = {2, 3, 4};
  };
  ScriptedTarget target(successor_rule({{1, 2}}));
  const auto caches = target.make_caches();
  const Sampler sampler({}, AcceptMode::kCoupled, 0, 8, test_exec());
  Greedy session;
  DecodeOptions options;
  options.depth = 2;
  Decoder decoder(target, *caches, &session, {}, sampler, 1, options);
  EXPECT_THROW(decoder.next(10), InternalError);
  EXPECT_THROW(decoder.next(0), InternalError);
  EXPECT_EQ(caches->offset(), 0);
}

TEST(Decoder, ASessionThatMissedThePromptIsCaught) {
  ScriptedTarget target(successor_rule({{1, 2}}));
  const auto caches = target.make_caches();
  recording(*caches).tokens = {0, 0};
  const Sampler sampler({}, AcceptMode::kCoupled, 0, 8, test_exec());
  ScriptedSession session(fixed({}), 1);
  EXPECT_THROW(Decoder(target, *caches, &session, {}, sampler, 1, {}), InternalError);
}

// --- one long greedy run, all kinds of drafters
// ------------------------------------------------------------------------

constexpr std::int64_t kVocab = 50;

struct LongRun {
  LongRun() : target(hashed_rule(77, 6), kVocab), prompt({5, 9, 2, 40, 11}) {
    DecodeRequest plain = request(prompt, 160, 0);
    plain.hash = true;
    reference = decode(target, nullptr, plain);
    run = prompt;
    run.insert(run.end(), reference.tokens.begin(), reference.tokens.end());
  }
  std::vector<std::pair<std::string, DraftScript>> scripts() const {
    return {{"right", always_right(run, kVocab)},
            {"wrong", always_wrong(run, kVocab)},
            {"alternating", alternating(run, kVocab)},
            {"counts", accept_counts(run, {0, 3, 1, 7, 0, 0, 2}, kVocab)},
            {"half", half_dropped(run, kVocab)}};
  }

  ScriptedTarget target;
  Ids prompt;
  Decoded reference;
  Ids run;
};

TEST(Decoder, EveryDrafterAndDepthGivesThePlainTokensAndTheSameLogitBits) {
  LongRun world;
  EXPECT_NE(world.reference.hash, 0u);
  for (const auto& [name, script] : world.scripts()) {
    ScriptedDrafter drafter(script, 15);
    for (std::int64_t depth = 0; depth <= 15; ++depth) {
      DecodeRequest drafted = request(world.prompt, 160, depth);
      drafted.hash = true;
      SteppedDecode run(world.target, &drafter, drafted);
      const Decoded decoded = run.finish();
      ASSERT_EQ(decoded.tokens, world.reference.tokens) << name << " at depth " << depth;
      EXPECT_EQ(decoded.hash, world.reference.hash) << name << " at depth " << depth;
      EXPECT_EQ(recording(run.caches()).tokens, Ids(world.run.begin(), world.run.end() - 1));
      EXPECT_EQ(world.target.whole_rows, 0);
    }
  }
}

TEST(Decoder, TheStatisticsAddUp) {
  LongRun world;
  for (const auto& [name, script] : world.scripts()) {
    ScriptedDrafter drafter(script, 15);
    for (const std::int64_t depth : {0, 1, 2, 7, 15}) {
      SteppedDecode run(world.target, &drafter, request(world.prompt, 160, depth));
      const Decoded decoded = run.finish();
      const DraftStats& stats = decoded.stats;
      EXPECT_EQ(stats.rounds, std::ssize(stats.lengths));
      EXPECT_EQ(std::accumulate(stats.lengths.begin(), stats.lengths.end(), std::int64_t{0}), 160);
      EXPECT_EQ(stats.rounds + stats.accepted, 160) << name;  // no stop: each round adds one of the target's own
      EXPECT_EQ(std::accumulate(stats.drafted_by_position.begin(), stats.drafted_by_position.end(), std::int64_t{0}),
                stats.drafted);
      EXPECT_EQ(std::accumulate(stats.accepted_by_position.begin(), stats.accepted_by_position.end(), std::int64_t{0}),
                stats.accepted);
      // Only what reached the target counts as drafted.
      std::int64_t handed_out = 0;
      std::int64_t with_drafts = 0;
      for (const Ids& proposal : dynamic_cast<ScriptedSession&>(run.session()).proposals) {
        handed_out += std::ssize(proposal);
        with_drafts += proposal.empty() ? 0 : 1;
      }
      EXPECT_EQ(stats.drafted, handed_out);
      EXPECT_EQ(stats.drafting_rounds, with_drafts);
      if (name == "right" || name == "half") {
        EXPECT_EQ(stats.accepted, stats.drafted);
      }
      if (name == "wrong") {
        EXPECT_EQ(stats.accepted, 0);
      }
    }
  }
}

TEST(Decoder, AcceptanceByPositionFollowsTheScript) {
  LongRun world;
  ScriptedDrafter drafter(accept_counts(world.run, {0, 3, 1, 7}, kVocab), 7);
  // Rounds emit 1, 4, 2 and 8 tokens in turn: 45 tokens are three such turns.
  const Decoded decoded = decode(world.target, &drafter, request(world.prompt, 45 + 8, 7));
  const std::vector<std::int64_t> lengths(decoded.stats.lengths.begin(), decoded.stats.lengths.begin() + 12);
  EXPECT_EQ(lengths, (std::vector<std::int64_t>{1, 4, 2, 8, 1, 4, 2, 8, 1, 4, 2, 8}));
  const std::vector<std::int64_t>& by_position = decoded.stats.accepted_by_position;
  ASSERT_EQ(by_position.size(), 7u);
  EXPECT_GE(by_position[0], 9);
  for (std::size_t i = 1; i < 7; ++i) EXPECT_LE(by_position[i], by_position[i - 1]);
  EXPECT_EQ(by_position[6], 3);
}

TEST(Decoder, AStopInMidBlockEndsEverythingAndTheNextTurnGoesOn) {
  LongRun world;
  // The sixth token is declared to be a stop; none before it may be the same.
  const auto first = world.reference.tokens.begin();
  ASSERT_EQ(std::find(first, first + 5, *(first + 5)), first + 5);
  const Ids stop = {*(first + 5)};
  const Ids want(first, first + 6);
  for (const std::int64_t depth : {0, 1, 3, 4, 5, 6, 15}) {
    ScriptedDrafter drafter(always_right(world.run, kVocab), 15);
    SteppedDecode run(world.target, &drafter, request(world.prompt, 160, depth, stop));
    const Decoded decoded = run.finish();
    EXPECT_EQ(decoded.tokens, want);
    EXPECT_TRUE(decoded.stopped);
    EXPECT_EQ(std::accumulate(decoded.stats.lengths.begin(), decoded.stats.lengths.end(), std::int64_t{0}), 6);
    EXPECT_LE(decoded.stats.accepted, 6);
    // Nothing at or behind the stop is in the caches, so a second turn on them is a second turn from nothing.
    Ids conversation = world.prompt;
    conversation.insert(conversation.end(), want.begin(), want.end() - 1);
    EXPECT_EQ(recording(run.caches()).tokens, conversation);
    conversation.insert(conversation.end(), {7, 8, 9});
    DecodeRequest next = request(conversation, 20, 0);
    const Decoded fresh = decode(world.target, nullptr, next);
    SteppedDecode second(world.target, nullptr, next, 512, &run.caches());
    EXPECT_EQ(second.finish().tokens, fresh.tokens);
  }
}

TEST(Decoder, ShortBudgetsAreAPrefixOfLongOnes) {
  LongRun world;
  ScriptedDrafter drafter(accept_counts(world.run, {2, 0, 7}, kVocab), 7);
  for (std::int64_t budget = 1; budget <= 24; ++budget) {
    EXPECT_EQ(decode(world.target, &drafter, request(world.prompt, budget, 7)).tokens,
              Ids(world.reference.tokens.begin(), world.reference.tokens.begin() + budget));
  }
}

TEST(Decoder, ChunksOfThePromptDoNotShow) {
  LongRun world;
  ScriptedDraft draft(successor_draft({{1, 2}}), 4, 6, kVocab);
  DFlashDrafter drafter(draft);
  for (const std::int64_t chunk : {1, 2, 3, 512}) {
    SteppedDecode run(world.target, &drafter, request(world.prompt, 40, 3), chunk);
    EXPECT_EQ(run.finish().tokens, Ids(world.reference.tokens.begin(), world.reference.tokens.begin() + 40));
  }
}

// --- failures
// ----------------------------------------------------------------------------------------------------------

// Steps on after every failure; whatever fails, the request comes out as if nothing had.
void expect_survives(ScriptedTarget& target, Drafter& drafter, ScriptedDraft* draft, const DecodeRequest& wanted,
                     const Ids& want, int failures) {
  SteppedDecode run(target, &drafter, wanted);
  int seen = 0;
  while (!run.done()) {
    const Ids before = recording(run.caches()).tokens;
    const std::int64_t frontier = run.session().frontier();
    const std::int64_t position = run.decoder().position();
    try {
      run.step();
    } catch (const Error&) {
      ++seen;
      EXPECT_EQ(recording(run.caches()).tokens, before);
      EXPECT_FALSE(recording(run.caches()).is_open());
      EXPECT_EQ(run.session().frontier(), frontier);
      EXPECT_EQ(run.decoder().position(), position);
      if (draft != nullptr) {
        EXPECT_FALSE(recording(run.draft_caches()).is_open());
      }
    }
  }
  EXPECT_EQ(seen, failures);
  EXPECT_EQ(run.decoded().tokens, want);
  run.decoder().close();
  if (draft != nullptr) {
    EXPECT_EQ(run.draft_caches().offset(), run.caches().offset());
  }
}

TEST(Decoder, AForwardThatThrowsLeavesARoundThatMayBeRepeated) {
  LongRun world;
  const Ids want(world.reference.tokens.begin(), world.reference.tokens.begin() + 60);
  for (const std::int64_t depth : {0, 3}) {
    DecodeRequest wanted = request(world.prompt, 60, depth);
    {
      ScriptedTarget target(hashed_rule(77, 6), kVocab);
      target.fail_at = {1, 2, 9};  // call 0 is the prompt
      ScriptedDrafter drafter(accept_counts(world.run, {3, 1, 0}, kVocab), 7);
      expect_survives(target, drafter, nullptr, wanted, want, 3);
    }
    if (depth > 0) {
      ScriptedDraft draft(successor_draft({{1, 2}}), 4, 6, kVocab);
      draft.fail_at = {0, 5, 6};
      draft.fail_unembed = {2, 7};
      DFlashDrafter drafter(draft);
      expect_survives(world.target, drafter, &draft, wanted, want, 5);
    }
  }
}

TEST(Decoder, ASessionThatThrowsOnReportUndoesTheRound) {
  LongRun world;
  ScriptedDrafter drafter(always_right(world.run, kVocab), 7);
  SteppedDecode run(world.target, &drafter, request(world.prompt, 40, 3));
  run.step();
  const Ids before = recording(run.caches()).tokens;
  dynamic_cast<ScriptedSession&>(run.session()).fail_next_commit = true;
  EXPECT_THROW(run.step(), Error);
  EXPECT_EQ(recording(run.caches()).tokens, before);
  EXPECT_EQ(run.finish().tokens, Ids(world.reference.tokens.begin(), world.reference.tokens.begin() + 40));
}

// --- sampling
// ----------------------------------------------------------------------------------------------------------

TEST(Decoder, WholeLogitRowsAreAskedForOnlyWhenSampling) {
  LongRun world;
  ScriptedDraft draft(successor_draft({{1, 2}}), 4, 6, kVocab);
  DFlashDrafter drafter(draft);
  DecodeRequest wanted = request(world.prompt, 30, 3);
  decode(world.target, &drafter, wanted);
  EXPECT_EQ(world.target.whole_rows + draft.whole_rows, 0);
  wanted.params.temperature = 1;
  const Decoded sampled = decode(world.target, &drafter, wanted);
  EXPECT_EQ(world.target.whole_rows, sampled.stats.rounds + sampled.stats.drafted);
  EXPECT_EQ(draft.whole_rows, sampled.stats.drafted);
}

}  // namespace
}  // namespace drafthorse
