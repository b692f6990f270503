#include "sampling/acceptance.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace drafthorse {
namespace {

using Ids = std::vector<std::int32_t>;

TEST(Acceptance, EqualTokensStandUpToTheFirstDifference) {
  const auto verdict = [](const Ids& choices, const Ids& drafts) {
    const Acceptance a = accept_equal(choices, drafts);
    return std::pair(a.accepted, a.next);
  };
  EXPECT_EQ(verdict({4}, {}), std::pair(std::int64_t{0}, 4));
  EXPECT_EQ(verdict({2, 3, 4, 5}, {2, 3, 4}), std::pair(std::int64_t{3}, 5));
  EXPECT_EQ(verdict({2, 3, 4, 5}, {2, 7, 4}), std::pair(std::int64_t{1}, 3));
  EXPECT_EQ(verdict({2, 3, 4, 5}, {1, 3, 4}), std::pair(std::int64_t{0}, 2));
  EXPECT_THROW(accept_equal(Ids{1, 2}, Ids{1, 2}), InternalError);
}

TEST(Acceptance, TheCoinFallsAtTheRatioOfTheProbabilities) {
  EXPECT_TRUE(accept_draft(0.25f, 0.5f, 0.4999));  // .25 / .5 = .5
  EXPECT_FALSE(accept_draft(0.25f, 0.5f, 0.5));
  EXPECT_TRUE(accept_draft(0.5f, 0.2f, 0.999999));  // more likely than proposed: always
  EXPECT_TRUE(accept_draft(0.3f, 0.3f, 0.999999));
}

TEST(Acceptance, OneSidedZerosAreDecidedWithoutDividing) {
  EXPECT_FALSE(accept_draft(0.0f, 0.5f, 0.0));
  EXPECT_FALSE(accept_draft(0.0f, 0.0f, 0.0));
  EXPECT_TRUE(accept_draft(1e-30f, 0.0f, 0.999999));
}

}  // namespace
}  // namespace drafthorse
