#include "sampling/filters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "support/test_machine.h"

namespace drafthorse {
namespace {

using Ids = std::vector<std::int32_t>;
using Row = std::vector<float>;

struct Kept {
  Ids ids;
  Row logits;
  Row probs;
};

Kept keep(const SamplingParams& params, const Row& logits) {
  const Filters filters(params, std::ssize(logits));
  FilterScratch scratch;
  filters.keep(logits, test_exec().kernels, scratch);
  return {scratch.ids, scratch.logits, scratch.probs};
}

Row logs(const Row& probs) {
  Row out;
  for (const float p : probs) out.push_back(std::log(p));
  return out;
}

SamplingParams params(float temperature, std::int64_t top_k, float top_p, float min_p) {
  SamplingParams out;
  out.temperature = temperature;
  out.top_k = top_k;
  out.top_p = top_p;
  out.min_p = min_p;
  return out;
}

// The definition, word by word: sort everything, no short cuts. Probabilities come from the kernel under test's
// softmax.
Kept keep_by_definition(const SamplingParams& p, const Row& logits) {
  Ids order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  if (p.top_k > 0 && p.top_k < std::ssize(logits)) order.resize(static_cast<std::size_t>(p.top_k));
  std::sort(order.begin(), order.end());
  Row scores;
  for (const std::int32_t id : order) scores.push_back(logits[static_cast<std::size_t>(id)]);
  Row probs(scores.size());
  test_exec().kernels.softmax(scores.data(), p.temperature, probs.data(), std::ssize(scores));
  std::vector<std::size_t> rank(order.size());
  std::iota(rank.begin(), rank.end(), 0u);
  std::stable_sort(rank.begin(), rank.end(), [&](std::size_t a, std::size_t b) { return probs[a] > probs[b]; });
  std::vector<bool> alive(order.size(), true);
  double before = 0;
  for (const std::size_t i : rank) {
    if (p.top_p > 0 && p.top_p < 1 && !(before < p.top_p)) alive[i] = false;
    before += probs[i];
  }
  const float largest = *std::max_element(probs.begin(), probs.end());
  Kept out;
  double sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (p.min_p > 0 && p.min_p <= 1 && probs[i] < p.min_p * largest) alive[i] = false;
    if (!alive[i]) continue;
    out.ids.push_back(order[i]);
    out.logits.push_back(scores[i]);
    out.probs.push_back(probs[i]);
    sum += probs[i];
  }
  for (float& x : out.probs) x = static_cast<float>(x / std::max(sum, 1e-20));
  return out;
}

TEST(Filters, OptionsOutOfRangeAreOff) {
  EXPECT_FALSE(Filters(params(1, 0, 1, 0), 8).any());
  EXPECT_FALSE(Filters(params(1, -3, 0, -1), 8).any());
  EXPECT_FALSE(Filters(params(1, 8, 1.5f, 1.5f), 8).any());
  EXPECT_TRUE(Filters(params(1, 7, 1, 0), 8).any());
  EXPECT_TRUE(Filters(params(1, 0, 0.99f, 0), 8).any());
  EXPECT_TRUE(Filters(params(1, 0, 1, 1.0f), 8).any());
}

TEST(Filters, TopKComesBeforeTopP) {
  // Of the two that top-k leaves the first weighs .75, which is enough for top_p .7; over all three it would not have
  // been.
  const Kept kept = keep(params(1, 2, 0.7f, 0), logs({0.6f, 0.2f, 0.2f}));
  EXPECT_EQ(kept.ids, (Ids{0}));
  EXPECT_EQ(kept.probs, (Row{1.0f}));
  EXPECT_EQ(keep(params(1, 0, 0.7f, 0), logs({0.6f, 0.2f, 0.2f})).ids, (Ids{0, 1}));
}

TEST(Filters, AmongEqualLogitsTopKKeepsTheLowestIds) {
  EXPECT_EQ(keep(params(1, 3, 1, 0), {1, 2, 2, 1, 2, 2, 1}).ids, (Ids{1, 2, 4}));
  EXPECT_EQ(keep(params(1, 2, 1, 0), Row(1000, 0.5f)).ids, (Ids{0, 1}));
  EXPECT_EQ(keep(params(1, 1, 1, 0), {1, 5, 4}).ids, (Ids{1}));
}

TEST(Filters, TopPKeepsWhatHasLessThanItBefore) {
  const Row logits = logs({0.125f, 0.5f, 0.25f, 0.125f});
  EXPECT_EQ(keep(params(1, 0, 0.4f, 0), logits).ids, (Ids{1}));
  EXPECT_EQ(keep(params(1, 0, 0.51f, 0), logits).ids, (Ids{1, 2}));
  EXPECT_EQ(keep(params(1, 0, 0.8f, 0), logits).ids, (Ids{0, 1, 2}));  // the lower of two equal ones
  EXPECT_EQ(keep(params(1, 0, 0.9f, 0), logits).ids, (Ids{0, 1, 2, 3}));
}

TEST(Filters, MinPIsMeasuredAgainstTheLargest) {
  const Row logits = logs({0.5f, 0.3f, 0.2f});
  EXPECT_EQ(keep(params(1, 0, 1, 0.7f), logits).ids, (Ids{0}));
  EXPECT_EQ(keep(params(1, 0, 1, 0.5f), logits).ids, (Ids{0, 1}));
  EXPECT_EQ(keep(params(1, 0, 1, 0.3f), logits).ids, (Ids{0, 1, 2}));
}

TEST(Filters, TheTemperatureActsBeforeTopP) {
  const Row logits = logs({0.6f, 0.2f, 0.2f});
  EXPECT_EQ(keep(params(0.25f, 0, 0.9f, 0), logits).ids, (Ids{0}));
  EXPECT_EQ(keep(params(4.0f, 0, 0.9f, 0), logits).ids, (Ids{0, 1, 2}));
}

TEST(Filters, RowsOfNoNumbersLeaveOneToken) {
  const float nan = std::nanf("");
  const float inf = std::numeric_limits<float>::infinity();
  for (const Row& row : {Row{nan, nan, nan}, Row{-inf, -inf, -inf}, Row{nan, 1, 2}, Row{1, inf, 2}}) {
    for (const SamplingParams& p :
         {params(1, 2, 1, 0), params(1, 0, 0.5f, 0), params(1, 0, 1, 0.5f), params(1, 2, 0.5f, 0.5f)}) {
      const Kept kept = keep(p, row);
      ASSERT_GE(kept.ids.size(), 1u);
      EXPECT_NEAR(std::accumulate(kept.probs.begin(), kept.probs.end(), 0.0), 1.0, 1e-6);
    }
  }
  EXPECT_EQ(keep(params(1, 2, 1, 0), {-inf, 3, -inf}).ids, (Ids{1}));
}

TEST(Filters, SelectionWithoutSortingIsTheDefinition) {
  const std::vector<SamplingParams> settings = {
      params(1.0f, 20, 1, 0),       params(0.6f, 20, 0.95f, 0),     params(1.0f, 0, 0.95f, 0),
      params(1.0f, 0, 0.5f, 0),     params(1.0f, 0, 0.999f, 0),     params(0.8f, 0, 1, 0.05f),
      params(0.7f, 0, 0.9f, 0.02f), params(1.3f, 300, 0.9f, 0.01f), params(1.0f, 2999, 0.9999f, 0),
      params(0.3f, 1, 0.5f, 0.5f),  params(1.0f, 0, 0.9999999f, 0)};
  for (std::uint64_t trial = 0; trial < 24; ++trial) {
    Row logits(3000);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double u = draw_uniform(trial, i, Purpose::kToken);
      // Spread from flat to peaked; every third row on a coarse grid, so that most values are tied.
      logits[i] = static_cast<float>((trial % 8) * std::log(1.0 / (u + 1e-9)));
      if (trial % 3 == 0) logits[i] = std::round(logits[i]);
    }
    for (const SamplingParams& p : settings) {
      const Kept have = keep(p, logits);
      const Kept want = keep_by_definition(p, logits);
      ASSERT_EQ(have.ids, want.ids) << "trial " << trial << " k " << p.top_k << " p " << p.top_p << " min " << p.min_p;
      EXPECT_EQ(have.logits, want.logits);
      for (std::size_t i = 0; i < want.probs.size(); ++i) ASSERT_NEAR(have.probs[i], want.probs[i], 1e-6f);
    }
  }
}

}  // namespace
}  // namespace drafthorse
