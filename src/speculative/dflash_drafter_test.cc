#include "speculative/dflash_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "support/scripted_decode.h"
#include "support/scripted_target.h"
#include "support/test_machine.h"

namespace drafthorse {
namespace {

using Ids = std::vector<std::int32_t>;
using Call = ScriptedDraft::Call;

const std::map<std::int32_t, std::int32_t> kCount = {{1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 7}, {7, 0}};

// A session over a scripted draft of vocabulary 8 and mask 6; features are hot at the tokens themselves.
class DFlash : public ::testing::Test {
 protected:
  void open(std::int64_t block_size, Ids restored = {}) {
    draft_ = std::make_unique<ScriptedDraft>(successor_draft(kCount), block_size);
    drafter_ = std::make_unique<DFlashDrafter>(*draft_);
    caches_ = drafter_->make_caches();
    recording(*caches_).tokens = std::move(restored);
    session_ = drafter_->open(*caches_, greedy_);
  }
  void commit(const Ids& tokens, std::int64_t slot) {
    std::vector<float> rows(tokens.size() * 8);
    for (std::size_t i = 0; i < tokens.size(); ++i) rows[i * 8 + static_cast<std::size_t>(tokens[i])] = 1.0f;
    session_->committed(tokens, {rows.data(), std::ssize(tokens), 8, 8}, slot);
  }
  Ids propose(std::int32_t anchor, std::int64_t max) {
    const DraftProposal proposal = session_->propose(anchor, max);
    return {proposal.tokens.begin(), proposal.tokens.end()};
  }
  const Ids& context() { return recording(*caches_).tokens; }
  bool is_open() { return recording(*caches_).is_open(); }

  Sampler greedy_{SamplingParams{}, AcceptMode::kCoupled, 0, 8, test_exec()};
  std::unique_ptr<ScriptedDraft> draft_;
  std::unique_ptr<DFlashDrafter> drafter_;
  std::unique_ptr<CacheSet> caches_;
  std::unique_ptr<DraftSession> session_;
};

Ids digits(std::int64_t n) {
  Ids out;
  for (std::int64_t i = 0; i < n; ++i) out.push_back(static_cast<std::int32_t>(i * i % 8));
  return out;
}

TEST_F(DFlash, AFullBufferIsWrittenAtOnceAndTheRestWhenSettled) {
  open(4);
  const Ids run = digits(258);
  commit(Ids(run.begin(), run.begin() + 256), 0);
  ASSERT_EQ(draft_->calls.size(), 1u);
  EXPECT_EQ(draft_->calls[0].block, Ids{});
  EXPECT_EQ(caches_->offset(), 256);
  commit(Ids(run.begin() + 255, run.end()), 255);  // one row it has, two it has not
  EXPECT_EQ(draft_->calls.size(), 1u);
  EXPECT_EQ(session_->frontier(), 258);
  session_->settle(1);
  ASSERT_EQ(draft_->calls.size(), 2u);
  EXPECT_EQ(draft_->calls[1], (Call{256, {run[256], run[257]}, {}}));
  EXPECT_EQ(caches_->offset(), 258);
  session_->settle(1);
  EXPECT_EQ(draft_->calls.size(), 2u);  // nothing left to write
}

TEST_F(DFlash, AHoleIsRefusedNamingBothSlots) {
  open(4);
  commit({1}, 0);
  try {
    commit({4}, 3);
    FAIL() << "a hole was accepted";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("slot 3"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("missing is 1"));
  }
  EXPECT_EQ(session_->frontier(), 1);
}

TEST_F(DFlash, ARestoredPrefixIsNotWrittenAgain) {
  open(4, {1, 2, 3, 4, 5});
  EXPECT_EQ(session_->frontier(), 5);
  commit({2, 3, 0, 1}, 3);
  session_->settle(2);
  EXPECT_EQ(draft_->calls, (std::vector<Call>{{5, {0, 1}, {}}}));
  EXPECT_EQ(context(), (Ids{1, 2, 3, 4, 5, 0, 1}));
  commit({3, 0}, 4);  // all of it known
  session_->settle(2);
  EXPECT_EQ(draft_->calls.size(), 1u);
}

TEST_F(DFlash, NothingIsProposedWithoutContextOrRoom) {
  open(4);
  EXPECT_EQ(propose(1, 10), Ids{});
  commit({0}, 0);
  EXPECT_EQ(propose(1, 0), Ids{});
  EXPECT_TRUE(draft_->calls.empty());
  EXPECT_EQ(propose(1, 10), (Ids{2, 3, 4}));
  EXPECT_EQ(draft_->calls, (std::vector<Call>{{0, {0}, {1, 6, 6, 6}}}));
}

TEST_F(DFlash, BlockRowsNeverEnterTheCache) {
  open(4);
  commit({1}, 0);
  EXPECT_EQ(propose(2, 3), (Ids{3, 4, 5}));
  EXPECT_EQ(context(), (Ids{1}));
  commit({2, 3, 4}, 1);
  session_->settle(5);
  EXPECT_EQ(context(), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(draft_->calls.back(), (Call{1, {2, 3, 4}, {}}));
  EXPECT_EQ(draft_->whole_rows, 0);  // greedy wants the argmax only
}

TEST_F(DFlash, SettlingRightAfterAProposalWritesNothing) {
  open(4);
  commit({1}, 0);
  propose(2, 3);
  session_->settle(2);
  EXPECT_EQ(context(), (Ids{1}));
  EXPECT_EQ(draft_->calls.size(), 1u);
}

TEST_F(DFlash, TheBlockIsAsShortAsTheBudget) {
  open(4);
  commit({1}, 0);
  EXPECT_EQ(propose(2, 1), (Ids{3}));
  EXPECT_EQ(draft_->calls.back().block, (Ids{2, 6}));
}

TEST_F(DFlash, AProposalMayFollowAProposal) {
  open(4);
  commit({1}, 0);
  EXPECT_EQ(propose(2, 3), (Ids{3, 4, 5}));
  EXPECT_EQ(propose(2, 2), (Ids{3, 4}));
  EXPECT_EQ(draft_->calls, (std::vector<Call>{{0, {1}, {2, 6, 6, 6}}, {1, {}, {2, 6, 6}}}));
  EXPECT_EQ(context(), (Ids{1}));
  EXPECT_EQ(propose(2, 0), Ids{});
  session_->settle(2);
  EXPECT_EQ(caches_->offset(), session_->frontier());
}

TEST_F(DFlash, ProposingLeavesTheContextOfARunThatNeverProposed) {
  open(4);
  const Ids run = digits(700);
  for (std::int64_t slot = 0; slot < 700; ++slot) {
    commit({run[static_cast<std::size_t>(slot)]}, slot);
    if (slot % 5 == 0) propose(1, 1 + slot % 3);
  }
  session_->settle(0);
  EXPECT_EQ(context(), run);
}

TEST_F(DFlash, ASessionThatNeverDraftsStaysBounded) {
  open(4);
  const Ids run = digits(10000);
  for (std::int64_t slot = 0; slot < 10000; ++slot) {
    commit({run[static_cast<std::size_t>(slot)]}, slot);
    ASSERT_LT(session_->frontier() - caches_->offset(), 256);
  }
  session_->settle(0);
  EXPECT_EQ(context(), run);
  EXPECT_EQ(draft_->calls.size(), 40u);
}

TEST_F(DFlash, ALongChunkBehindWaitingRowsKeepsTheOrder) {
  open(4);
  const Ids run = digits(600);
  commit({run[0], run[1], run[2]}, 0);
  commit(Ids(run.begin() + 1, run.end()), 1);
  EXPECT_EQ(context(), run);
}

TEST_F(DFlash, AFailedWriteIsUndoneAndMayBeRepeated) {
  open(4);
  const Ids run = digits(300);
  commit(Ids(run.begin(), run.begin() + 255), 0);
  draft_->fail_at = {0, 2};
  EXPECT_THROW(commit({run[255]}, 255), Error);  // would have filled the buffer
  EXPECT_EQ(session_->frontier(), 255);
  EXPECT_EQ(context(), Ids{});
  EXPECT_FALSE(is_open());
  commit({run[255]}, 255);
  EXPECT_EQ(context(), Ids(run.begin(), run.begin() + 256));
  commit(Ids(run.begin() + 256, run.end()), 256);
  EXPECT_THROW(propose(1, 3), Error);
  EXPECT_EQ(caches_->offset(), 256);
  EXPECT_EQ(session_->frontier(), 300);
  EXPECT_EQ(propose(1, 3), (Ids{2, 3, 4}));
  EXPECT_EQ(context(), run);
}

TEST_F(DFlash, AFailedHeadLosesNoContext) {
  open(4);
  commit({1, 2}, 0);
  draft_->fail_unembed = {0};
  EXPECT_THROW(propose(3, 3), Error);
  EXPECT_EQ(session_->frontier(), 2);
  EXPECT_EQ(context(), (Ids{1, 2}));
  EXPECT_EQ(propose(3, 3), (Ids{4, 5, 7}));
}

TEST_F(DFlash, FeaturesOfTheWrongShapeAreRefused) {
  open(4);
  const std::vector<float> rows(16);
  EXPECT_THROW(session_->committed(Ids{1, 2}, {rows.data(), 1, 8, 8}, 0), InternalError);
  EXPECT_THROW(session_->committed(Ids{1, 2}, {rows.data(), 2, 4, 4}, 0), InternalError);
}

TEST_F(DFlash, UnderRejectionAProposalCarriesTheRowsItWasDrawnFrom) {
  open(4);
  SamplingParams hot;
  hot.temperature = 1;
  const Sampler rejection(hot, AcceptMode::kRejection, 3, 8, test_exec());
  auto caches = drafter_->make_caches();
  const auto session = drafter_->open(*caches, rejection);
  const std::vector<float> row(8);
  session->committed(Ids{1}, {row.data(), 1, 8, 8}, 0);
  const DraftProposal proposal = session->propose(2, 3);
  EXPECT_EQ(Ids(proposal.tokens.begin(), proposal.tokens.end()), (Ids{3, 4, 5}));
  ASSERT_NE(proposal.proposed, nullptr);
  EXPECT_EQ(proposal.proposed->rows(), 3);
  EXPECT_GT(proposal.proposed->prob(2, 5), 0.99f);
  EXPECT_EQ(draft_->whole_rows, 3);
  const Sampler coupled(hot, AcceptMode::kCoupled, 3, 8, test_exec());
  auto more = drafter_->make_caches();
  const auto other = drafter_->open(*more, coupled);
  other->committed(Ids{1}, {row.data(), 1, 8, 8}, 0);
  EXPECT_EQ(other->propose(2, 3).proposed, nullptr);
}

// The whole path, forward by forward: what the target and the draft were asked for, and where they end.
TEST(DFlashDecode, EveryForwardOfARequest) {
  ScriptedTarget target(successor_rule(kCount));
  ScriptedDraft draft(successor_draft(kCount), 3);
  DFlashDrafter drafter(draft);
  DecodeRequest request;
  request.prompt = {1};
  request.budget = 20;
  request.depth = 4;  // the block holds two
  request.stop_ids = {7};
  SteppedDecode run(target, &drafter, request);
  const Decoded decoded = run.finish();
  EXPECT_EQ(decoded.tokens, (Ids{2, 3, 4, 5, 7}));
  EXPECT_TRUE(decoded.stopped);
  EXPECT_EQ(target.calls, (std::vector<ScriptedTarget::Call>{{0, 1}, {1, 3}, {4, 3}}));
  EXPECT_EQ(draft.calls, (std::vector<Call>{{0, {2}, {2, 6, 6}}, {1, {3, 4, 5}, {5, 6, 6}}, {4, {7}, {}}}));
  EXPECT_EQ(run.caches().offset(), run.draft_caches().offset());
  EXPECT_EQ(recording(run.draft_caches()).tokens, (Ids{2, 3, 4, 5, 7}));  // what follows each slot; no mask
  EXPECT_EQ(recording(run.caches()).tokens, (Ids{1, 2, 3, 4, 5}));
}

// The draft's mask is 6; a target that really says 6 is believed.
TEST(DFlashDecode, AMaskIdThatIsARealOutputStays) {
  const std::map<std::int32_t, std::int32_t> map = {{1, 6}, {6, 2}, {2, 6}};
  for (const std::int64_t depth : {0, 1, 3}) {
    ScriptedTarget target(successor_rule(map));
    ScriptedDraft draft(successor_draft(map), 4);
    DFlashDrafter drafter(draft);
    DecodeRequest request;
    request.prompt = {0, 1};
    request.budget = 9;
    request.depth = depth;
    SteppedDecode run(target, &drafter, request);
    EXPECT_EQ(run.finish().tokens, (Ids{6, 2, 6, 2, 6, 2, 6, 2, 6}));
    EXPECT_EQ(recording(run.caches()).tokens, (Ids{0, 1, 6, 2, 6, 2, 6, 2, 6, 2}));
  }
}

TEST(DFlashDecode, ASecondRequestStartsFresh) {
  ScriptedTarget target(hashed_rule(4, 5));
  DraftRule rule = [](std::int32_t anchor, std::int64_t slot, std::int64_t i, std::span<float> logits) {
    std::fill(logits.begin(), logits.end(), 0.0f);
    logits[static_cast<std::size_t>((anchor + slot + i) % 8)] = 1.0f;
  };
  DecodeRequest a;
  a.prompt = digits(40);
  a.budget = 30;
  a.depth = 3;
  DecodeRequest b = a;
  b.prompt = digits(6);
  const auto alone = [&](const DecodeRequest& request) {
    ScriptedDraft draft(rule, 8);
    DFlashDrafter drafter(draft);
    return decode(target, &drafter, request);
  };
  ScriptedDraft draft(rule, 8);
  DFlashDrafter drafter(draft);
  for (const DecodeRequest* request : {&a, &b, &a}) {
    const Decoded shared = decode(target, &drafter, *request);
    const Decoded fresh = alone(*request);
    EXPECT_EQ(shared.tokens, fresh.tokens);
    EXPECT_EQ(shared.stats.drafted, fresh.stats.drafted);
    EXPECT_EQ(shared.stats.accepted, fresh.stats.accepted);
    EXPECT_GT(shared.stats.drafted, 0);
  }
}

TEST(DFlashDecode, InterleavedSequencesDoNotTouchEachOther) {
  ScriptedTarget target(hashed_rule(9, 5));
  // Right about every second slot of any sequence whose tokens follow the anchor's parity: good enough to accept and to
  // reject.
  DraftRule rule = [](std::int32_t anchor, std::int64_t slot, std::int64_t i, std::span<float> logits) {
    for (std::size_t x = 0; x < logits.size(); ++x) {
      logits[x] =
          static_cast<float>((static_cast<std::size_t>(anchor) * 5 + static_cast<std::size_t>(slot + i) * 3 + x) % 8);
    }
  };
  DecodeRequest a;
  a.prompt = {1, 2, 3};
  a.budget = 60;
  DecodeRequest b = a;
  b.prompt = {3, 3, 1, 0, 2};
  for (const std::int64_t depth : {1, 3, 7}) {
    for (const float temperature : {0.0f, 1.0f}) {
      for (const AcceptMode mode : {AcceptMode::kCoupled, AcceptMode::kRejection}) {
        a.depth = b.depth = depth;
        a.params.temperature = b.params.temperature = temperature;
        a.mode = b.mode = mode;
        a.seed = 5;
        b.seed = 6;
        ScriptedDraft draft(rule, 8);
        DFlashDrafter drafter(draft);
        const Decoded alone_a = decode(target, &drafter, a);
        const Decoded alone_b = decode(target, &drafter, b);
        SteppedDecode first(target, &drafter, a);
        SteppedDecode second(target, &drafter, b);
        while (!first.done() || !second.done()) {
          if (!first.done()) first.step();
          if (!second.done()) second.step();
        }
        EXPECT_EQ(first.decoded().tokens, alone_a.tokens);
        EXPECT_EQ(second.decoded().tokens, alone_b.tokens);
        EXPECT_GT(alone_a.stats.accepted, 0);
        EXPECT_LT(alone_a.stats.accepted, alone_a.stats.drafted);
      }
    }
  }
}

}  // namespace
}  // namespace drafthorse
