#include "engine/score.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/error_text.h"
#include "support/scripted_target.h"
#include "support/test_machine.h"

namespace drafthorse {
namespace {

/// Logits 0, 1, 2, .. for ids 0, 1, 2, .., with two equal ones at the top.
TargetRule staircase() {
  return [](std::span<const std::int32_t>, std::span<float> logits) {
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i);
    logits[logits.size() - 2] = logits.back();
  };
}

TEST(Score, IsTheNegativeLogLikelihoodOfEachTokenAfterThoseBefore) {
  ScriptedTarget target(staircase(), 5);  // 0 1 2 4 4
  const Score score = score_ids(target, test_exec(), std::vector<std::int32_t>{1, 4, 0}, 3);
  const double log_sum = std::log(1 + std::exp(1.0) + std::exp(2.0) + 2 * std::exp(4.0));
  ASSERT_EQ(score.nll.size(), 2u);
  EXPECT_NEAR(score.nll[0], log_sum - 4, 1e-5);
  EXPECT_NEAR(score.nll[1], log_sum - 0, 1e-5);
  EXPECT_NEAR(score.nll_mean(), log_sum - 2, 1e-5);
  ASSERT_EQ(score.top.size(), 3u);
  EXPECT_EQ(score.top[2].ids, (std::vector<std::int32_t>{3, 4, 2}));  // equal logits: the lower id first
  EXPECT_EQ(score.top[2].logits, (std::vector<float>{4, 4, 2}));
}

TEST(Score, LongTextsGoThroughInPieces) {
  ScriptedTarget target(hashed_rule(3, 2.0f), 8);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 700; ++i) ids.push_back(i % 8);
  const Score whole = score_ids(target, test_exec(), ids, 1);
  EXPECT_EQ(target.calls, (std::vector<ScriptedTarget::Call>{{0, 512}, {512, 188}}));
  ASSERT_EQ(whole.nll.size(), 699u);
  const Score start = score_ids(target, test_exec(), std::span(ids).first(40), 1);
  for (std::size_t t = 0; t < start.nll.size(); ++t) EXPECT_EQ(start.nll[t], whole.nll[t]);
  EXPECT_EQ(start.top[39].ids, whole.top[39].ids);
}

TEST(Score, OneIdHasNoLikelihoodButAnExpectation) {
  ScriptedTarget target(staircase(), 5);
  const Score score = score_ids(target, test_exec(), std::vector<std::int32_t>{1}, 100);
  EXPECT_TRUE(score.nll.empty());
  EXPECT_EQ(score.nll_mean(), 0.0);
  EXPECT_EQ(score.top[0].ids.size(), 5u);  // no more than there are
}

TEST(Score, BadIdsAreRefused) {
  ScriptedTarget target(staircase(), 5);
  expect_error([&] { score_ids(target, test_exec(), {}, 0); }, {"no ids"});
  expect_error([&] { score_ids(target, test_exec(), std::vector<std::int32_t>{5}, 0); }, {"id 5", "0 to 4"});
}

}  // namespace
}  // namespace drafthorse
