#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "base/error.h"
#include "support/chi_square.h"
#include "support/test_machine.h"

namespace drafthorse {
namespace {

using Ids = std::vector<std::int32_t>;
using Row = std::vector<float>;

SamplingParams hot(float temperature, std::int64_t top_k = 0, float top_p = 1, float min_p = 0) {
  SamplingParams params;
  params.temperature = temperature;
  params.top_k = top_k;
  params.top_p = top_p;
  params.min_p = min_p;
  return params;
}

Sampler sampler(const SamplingParams& params, AcceptMode mode, std::uint64_t seed, std::int64_t vocab) {
  return Sampler(params, mode, seed, vocab, test_exec());
}

Row logs(const Row& probs) {
  Row out;
  for (const float p : probs) out.push_back(std::log(p));
  return out;
}

ConstRows view(const Row& values, std::int64_t rows) {
  const std::int64_t cols = std::ssize(values) / rows;
  return {values.data(), rows, cols, cols};
}

Row noise_row(std::uint64_t salt, std::int64_t n, float spread) {
  Row out;
  for (std::int64_t i = 0; i < n; ++i) {
    out.push_back(spread * static_cast<float>(draw_uniform(salt, static_cast<std::uint64_t>(i), Purpose::kToken)));
  }
  return out;
}

TEST(Sampler, GreedyTakesTheLargestAndTheLowestIdOnTies) {
  const Sampler greedy = sampler(hot(0), AcceptMode::kRejection, 1, 5);
  SamplerScratch scratch;
  EXPECT_FALSE(greedy.needs_logits());
  EXPECT_EQ(greedy.choose(Row{1, 5, 4, 5, 0}, 3, scratch), 1);
  EXPECT_EQ(sampler(hot(-1), AcceptMode::kCoupled, 1, 3).choose(Row{0, 0, 0}, 3, scratch), 0);
}

TEST(Sampler, FiltersLeaveOneChoice) {
  SamplerScratch scratch;
  for (const AcceptMode mode : {AcceptMode::kCoupled, AcceptMode::kRejection}) {
    for (std::int64_t slot = 0; slot < 200; ++slot) {
      EXPECT_EQ(sampler(hot(1, 1), mode, 7, 3).choose(Row{1, 5, 4}, slot, scratch), 1);
      EXPECT_EQ(sampler(hot(1, 0, 0.4f), mode, 7, 3).choose(logs({0.5f, 0.3f, 0.2f}), slot, scratch), 0);
      EXPECT_EQ(sampler(hot(1, 0, 1, 0.7f), mode, 7, 3).choose(logs({0.5f, 0.3f, 0.2f}), slot, scratch), 0);
    }
  }
}

TEST(Sampler, ATokenDependsOnSeedAndSlotAlone) {
  const Row logits = noise_row(1, 50, 2);
  SamplerScratch scratch;
  for (const AcceptMode mode : {AcceptMode::kCoupled, AcceptMode::kRejection}) {
    const Sampler a = sampler(hot(1), mode, 1234, 50);
    Ids forward;
    for (std::int64_t slot = 0; slot < 32; ++slot) forward.push_back(a.choose(logits, slot, scratch));
    SamplerScratch fresh;
    const Sampler b = sampler(hot(1), mode, 1234, 50);
    Ids backward(32);
    for (std::int64_t slot = 31; slot >= 0; --slot)
      backward[static_cast<std::size_t>(slot)] = b.choose(logits, slot, fresh);
    EXPECT_EQ(forward, backward);
    Ids other;
    for (std::int64_t slot = 0; slot < 32; ++slot)
      other.push_back(sampler(hot(1), mode, 5678, 50).choose(logits, slot, scratch));
    EXPECT_NE(forward, other);
  }
}

// Gumbel-max: the noisy argmax is a draw from the filtered softmax, whatever the filters.
TEST(Sampler, BothWaysToSampleDrawFromTheFilteredSoftmax) {
  const Row logits = logs({0.05f, 0.3f, 0.1f, 0.35f, 0.2f});
  struct Case {
    SamplingParams params;
    std::vector<double> expected;
  };
  const std::vector<Case> cases = {
      {hot(1), {0.05, 0.3, 0.1, 0.35, 0.2}},
      {hot(1, 3), {0, 0.3 / 0.85, 0, 0.35 / 0.85, 0.2 / 0.85}},
      {hot(1, 0, 0.6f), {0, 0.3 / 0.65, 0, 0.35 / 0.65, 0}},
      {hot(1, 0, 1, 0.25f), {0, 0.3 / 0.95, 0.1 / 0.95, 0.35 / 0.95, 0.2 / 0.95}},
      {hot(0.5f), {0.0025 / 0.265, 0.09 / 0.265, 0.01 / 0.265, 0.1225 / 0.265, 0.04 / 0.265}}};
  SamplerScratch scratch;
  for (const AcceptMode mode : {AcceptMode::kCoupled, AcceptMode::kRejection}) {
    for (const Case& c : cases) {
      const Sampler s = sampler(c.params, mode, 99, 5);
      std::vector<std::int64_t> counts(5);
      for (std::int64_t slot = 0; slot < 100000; ++slot)
        ++counts[static_cast<std::size_t>(s.choose(logits, slot, scratch))];
      EXPECT_GT(chi_square_p_value(counts, c.expected), 1e-4) << accept_mode_name(mode);
    }
  }
}

TEST(Sampler, CoupledIsTheNoisyArgmaxOverAVocabularyOfSeveralParts) {
  constexpr std::int64_t kVocab = 40000;
  const Row logits = noise_row(3, kVocab, 4);
  SamplerScratch scratch;
  const Sampler s = sampler(hot(0.8f), AcceptMode::kCoupled, 17, kVocab);
  std::set<std::int64_t> parts;
  for (std::int64_t slot = 0; slot < 40; ++slot) {
    Row scores(kVocab);
    test_exec().kernels.gumbel_scores(logits.data(), nullptr, 0, 0.8f, 17, static_cast<std::uint64_t>(slot),
                                      scores.data(), kVocab);
    const std::int64_t want = test_exec().kernels.argmax(scores.data(), kVocab);
    EXPECT_EQ(s.choose(logits, slot, scratch), want);
    parts.insert(want / 16384);
  }
  EXPECT_EQ(parts.size(), 3u);  // otherwise the joining of parts was not tested
}

TEST(Sampler, AFilterThatDropsNothingThatMattersChangesNoCoupledToken) {
  const Row logits = noise_row(4, 100, 3);
  SamplerScratch scratch;
  for (std::int64_t slot = 0; slot < 300; ++slot) {
    EXPECT_EQ(sampler(hot(1), AcceptMode::kCoupled, 5, 100).choose(logits, slot, scratch),
              sampler(hot(1, 99, 1, 1e-9f), AcceptMode::kCoupled, 5, 100).choose(logits, slot, scratch));
  }
}

TEST(Sampler, ACoupledDraftUsesTheNoiseOfTheSlotItsTokenIsFor) {
  constexpr std::int64_t kRows = 6;
  const Row logits = noise_row(8, kRows * 30, 3);
  for (const SamplingParams& params : {hot(0), hot(1), hot(0.7f, 5), hot(1.2f, 0, 0.9f), hot(1, 0, 1, 0.1f)}) {
    const Sampler s = sampler(params, AcceptMode::kCoupled, 21, 30);
    SamplerScratch scratch;
    Distribution proposed;
    Ids drafts(kRows);
    s.propose(view(logits, kRows), {}, 11, drafts, proposed, scratch);
    EXPECT_EQ(proposed.rows(), 0);
    for (std::int64_t r = 0; r < kRows; ++r) {
      EXPECT_EQ(drafts[static_cast<std::size_t>(r)], s.choose({view(logits, kRows).row(r), 30}, 11 + r, scratch));
    }
    // A target with the same rows takes every one of them.
    const Row more = noise_row(8, (kRows + 1) * 30, 3);
    const Acceptance verdict = s.verify(view(more, kRows + 1), 11, drafts, nullptr, scratch);
    EXPECT_EQ(verdict.accepted, kRows);
    EXPECT_EQ(verdict.next, s.choose({view(more, kRows + 1).row(kRows), 30}, 11 + kRows, scratch));
    drafts[2] = (drafts[2] + 1) % 30;
    const Acceptance broken = s.verify(view(more, kRows + 1), 11, drafts, nullptr, scratch);
    EXPECT_EQ(broken.accepted, 2);
    EXPECT_EQ(broken.next, s.choose({view(more, kRows + 1).row(2), 30}, 13, scratch));
  }
}

TEST(Sampler, ARejectedDraftGivesWayToTheResidual) {
  // P {.3, .7}, q {.6, .4}: token 0 stands in half of the cases and 1 always; what replaces 0 can only be 1.
  const Row target = logs({0.3f, 0.7f, 0.3f, 0.7f});
  Distribution proposed;
  proposed.add_sparse(Ids{0, 1}, Row{0.6f, 0.4f});
  SamplerScratch scratch;
  std::vector<std::int64_t> stands(2);
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    const Sampler s = sampler(hot(1), AcceptMode::kRejection, seed, 2);
    const Acceptance zero = s.verify(view(target, 2), 5, Ids{0}, &proposed, scratch);
    ++stands[static_cast<std::size_t>(zero.accepted)];
    if (zero.accepted == 0) {
      EXPECT_EQ(zero.next, 1);
    }
    EXPECT_EQ(s.verify(view(target, 2), 5, Ids{1}, &proposed, scratch).accepted, 1);
  }
  EXPECT_GT(chi_square_p_value(stands, std::vector<double>{0.5, 0.5}), 1e-4);
}

TEST(Sampler, ADraftOutsideTheTargetsFiltersNeverStands) {
  const Row target = logs({0.3f, 0.7f, 0.3f, 0.7f});
  SamplerScratch scratch;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Sampler s = sampler(hot(1, 1), AcceptMode::kRejection, seed, 2);
    const Acceptance picked = s.verify(view(target, 2), 5, Ids{0}, nullptr, scratch);
    EXPECT_EQ(picked.accepted, 0);
    EXPECT_EQ(picked.next, 1);
    EXPECT_EQ(s.verify(view(target, 2), 5, Ids{1}, nullptr, scratch).accepted, 1);
  }
}

TEST(Sampler, AProposalIsDrawnFromTheRowsItReports) {
  const Row logits = logs({0.1f, 0.2f, 0.7f, 0.6f, 0.3f, 0.1f});
  SamplerScratch scratch;
  Distribution proposed;
  for (const SamplingParams& params : {hot(1), hot(1, 2)}) {
    std::vector<std::vector<std::int64_t>> counts(2, std::vector<std::int64_t>(3));
    for (std::uint64_t seed = 0; seed < 50000; ++seed) {
      Ids drafts(2);
      sampler(params, AcceptMode::kRejection, seed, 3).propose(view(logits, 2), {}, 40, drafts, proposed, scratch);
      ASSERT_EQ(proposed.rows(), 2);
      for (std::size_t r = 0; r < 2; ++r) ++counts[r][static_cast<std::size_t>(drafts[r])];
    }
    for (std::int64_t r = 0; r < 2; ++r) {
      std::vector<double> expected;
      for (std::int32_t id = 0; id < 3; ++id) expected.push_back(proposed.prob(r, id));
      EXPECT_GT(chi_square_p_value(counts[static_cast<std::size_t>(r)], expected), 1e-4);
    }
  }
}

/// A draft that can name a few ids only: the subset's rows and the same rows with every other id ruled out.
struct SubsetRows {
  Ids ids = {1, 4, 5, 9, 17, 28};
  Row narrow;
  Row wide;

  explicit SubsetRows(std::int64_t rows) {
    const Row all = noise_row(5, rows * 30, 3);
    wide.assign(static_cast<std::size_t>(rows) * 30, -std::numeric_limits<float>::infinity());
    for (std::int64_t r = 0; r < rows; ++r) {
      for (const std::int32_t id : ids) {
        const auto at = static_cast<std::size_t>(r * 30 + id);
        narrow.push_back(all[at]);
        wide[at] = all[at];
      }
    }
  }
};

TEST(Sampler, ADraftVocabularyDrawsAsIfEveryOtherIdWereRuledOut) {
  constexpr std::int64_t kRows = 4;
  const SubsetRows rows(kRows);
  const ConstRows narrow{rows.narrow.data(), kRows, 6, 6};
  SamplerScratch scratch;
  for (const AcceptMode mode : {AcceptMode::kCoupled, AcceptMode::kRejection}) {
    for (const SamplingParams& params :
         {SamplingParams{.temperature = 0.8f}, SamplingParams{.temperature = 1.3f, .top_k = 3},
          SamplingParams{.temperature = 0.7f, .top_p = 0.8f, .min_p = 0.05f}, SamplingParams{}}) {
      for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const Sampler s = sampler(params, mode, seed, 30);
        Distribution of_narrow;
        Distribution of_wide;
        Ids found(kRows);
        Ids expected(kRows);
        s.propose(narrow, rows.ids, 11, found, of_narrow, scratch);
        s.propose(view(rows.wide, kRows), {}, 11, expected, of_wide, scratch);
        ASSERT_EQ(found, expected);
        ASSERT_EQ(of_narrow.rows(), of_wide.rows());
        for (std::int64_t r = 0; r < of_narrow.rows(); ++r) {
          for (std::int32_t id = 0; id < 30; ++id) ASSERT_NEAR(of_narrow.prob(r, id), of_wide.prob(r, id), 1e-6);
          EXPECT_LE(of_narrow.ids(r).size(), rows.ids.size());
        }
      }
    }
  }
}

TEST(Sampler, RowsOfNoNumbersStillGiveATokenOfTheVocabulary) {
  const float nan = std::nanf("");
  const float inf = std::numeric_limits<float>::infinity();
  SamplerScratch scratch;
  for (const Row& row : {Row{nan, nan, nan}, Row{-inf, -inf, -inf}, Row{nan, 1, 0}, Row{1, inf, 0}}) {
    for (const SamplingParams& params : {hot(0), hot(1), hot(1, 2), hot(1, 0, 0.5f), hot(1, 0, 1, 0.3f)}) {
      for (const AcceptMode mode : {AcceptMode::kCoupled, AcceptMode::kRejection}) {
        const std::int32_t token = sampler(params, mode, 3, 3).choose(row, 9, scratch);
        EXPECT_GE(token, 0);
        EXPECT_LT(token, 3);
      }
    }
  }
}

TEST(Sampler, RowsMustHaveTheVocabularysWidth) {
  SamplerScratch scratch;
  const Sampler s = sampler(hot(1), AcceptMode::kCoupled, 1, 4);
  EXPECT_THROW(s.choose(Row{1, 2, 3}, 0, scratch), InternalError);
  EXPECT_THROW(s.verify(view(Row(8), 2), 0, Ids{1, 2}, nullptr, scratch), InternalError);
  EXPECT_THROW(sampler(hot(1), AcceptMode::kRejection, 1, 4).verify(view(Row(8), 2), 0, Ids{4}, nullptr, scratch),
               InternalError);
}

}  // namespace
}  // namespace drafthorse
