// Sampling with a draft has the distribution of sampling without one. A model of five tokens whose next token depends
// on the last one, so that the joint distribution of three tokens can be written down, against whole requests through
// the decoder.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "speculative/decoder.h"
#include "speculative/dflash_drafter.h"
#include "support/chi_square.h"
#include "support/scripted_decode.h"
#include "support/scripted_drafter.h"
#include "support/scripted_target.h"
#include "support/test_machine.h"

namespace drafthorse {
namespace {

constexpr std::size_t kVocab = 5;
constexpr std::uint64_t kSamples = 200000;
constexpr double kFits = 1e-4;
constexpr double kCaught = 1e-9;

using Table = std::array<std::array<double, kVocab>, kVocab>;

// Row: the token before. The draft's table is far from it, with different favourites.
constexpr Table kTarget = {{{0.40, 0.25, 0.15, 0.12, 0.08},
                            {0.05, 0.45, 0.20, 0.18, 0.12},
                            {0.22, 0.08, 0.30, 0.26, 0.14},
                            {0.10, 0.17, 0.13, 0.25, 0.35},
                            {0.28, 0.06, 0.33, 0.09, 0.24}}};
constexpr Table kDraft = {{{0.10, 0.30, 0.30, 0.10, 0.20},
                           {0.35, 0.20, 0.10, 0.25, 0.10},
                           {0.15, 0.15, 0.15, 0.15, 0.40},
                           {0.50, 0.05, 0.20, 0.20, 0.05},
                           {0.12, 0.36, 0.14, 0.30, 0.08}}};

void set_logs(const std::array<double, kVocab>& probs, std::span<float> logits) {
  for (std::size_t x = 0; x < kVocab; ++x) logits[x] = static_cast<float>(std::log(probs[x]));
}

TargetRule markov() {
  return [](std::span<const std::int32_t> history, std::span<float> logits) {
    set_logs(kTarget[static_cast<std::size_t>(history.back())], logits);
  };
}

std::size_t draft_row(std::int32_t anchor, std::int64_t i) { return static_cast<std::size_t>((anchor + 2 * i) % 5); }

DraftRule other_markov() {
  return [](std::int32_t anchor, std::int64_t, std::int64_t i, std::span<float> logits) {
    set_logs(kDraft[draft_row(anchor, i)], logits);
  };
}

// Temperature and filters on probabilities, by their definition, in double.
std::array<double, kVocab> filtered(const std::array<double, kVocab>& probs, const SamplingParams& params) {
  std::array<std::size_t, kVocab> rank;
  std::iota(rank.begin(), rank.end(), 0u);
  std::stable_sort(rank.begin(), rank.end(), [&](std::size_t a, std::size_t b) { return probs[a] > probs[b]; });
  const std::size_t kept = params.top_k > 0 ? std::min(kVocab, static_cast<std::size_t>(params.top_k)) : kVocab;
  std::array<double, kVocab> out = {};
  double sum = 0;
  for (std::size_t r = 0; r < kept; ++r) sum += out[rank[r]] = std::pow(probs[rank[r]], 1.0 / params.temperature);
  for (double& p : out) p /= sum;
  const double largest = out[rank[0]];
  double before = 0;
  double left = 0;
  for (std::size_t r = 0; r < kVocab; ++r) {
    double& p = out[rank[r]];
    const double own = p;
    if (!(before < params.top_p) || own < params.min_p * largest) p = 0;
    before += own;
    left += p;
  }
  for (double& p : out) p /= left;
  return out;
}

std::vector<double> joint_of_three(std::int32_t prompt_end, const SamplingParams& params) {
  std::vector<double> out;
  const auto first = filtered(kTarget[static_cast<std::size_t>(prompt_end)], params);
  for (std::size_t a = 0; a < kVocab; ++a) {
    const auto second = filtered(kTarget[a], params);
    for (std::size_t b = 0; b < kVocab; ++b) {
      const auto third = filtered(kTarget[b], params);
      for (std::size_t c = 0; c < kVocab; ++c) out.push_back(first[a] * second[b] * third[c]);
    }
  }
  return out;
}

// p-value of the first three tokens of kSamples requests with different seeds.
double p_value(Drafter* drafter, const SamplingParams& params, AcceptMode mode, std::int64_t depth) {
  ScriptedTarget target(markov(), kVocab);
  DecodeRequest request;
  request.prompt = {0, 2};
  request.budget = 5;
  request.depth = depth;
  request.params = params;
  request.mode = mode;
  std::vector<std::int64_t> counts(kVocab * kVocab * kVocab);
  for (request.seed = 0; request.seed < kSamples; ++request.seed) {
    const std::vector<std::int32_t> t = decode(target, drafter, request).tokens;
    ++counts[(static_cast<std::size_t>(t[0]) * kVocab + static_cast<std::size_t>(t[1])) * kVocab +
             static_cast<std::size_t>(t[2])];
    target.calls.clear();
  }
  return chi_square_p_value(counts, joint_of_three(2, params));
}

SamplingParams sampled(float temperature, std::int64_t top_k = 0, float top_p = 1, float min_p = 0) {
  SamplingParams params;
  params.temperature = temperature;
  params.top_k = top_k;
  params.top_p = top_p;
  params.min_p = min_p;
  return params;
}

double p_value_with_dflash(const SamplingParams& params, AcceptMode mode) {
  ScriptedDraft draft(other_markov(), 4, 1, kVocab);
  DFlashDrafter drafter(draft);
  return p_value(&drafter, params, mode, 3);
}

// Draws from rows of its own making and says so, or says something else.
class DrawingDrafter : public ScriptedDrafter {
 public:
  enum class Rows { kDense, kTopTwo };

  DrawingDrafter(Rows rows, bool honest) : ScriptedDrafter({}, 7), rows_(rows), honest_(honest) {}

  std::unique_ptr<DraftSession> open(CacheSet& caches, const Sampler& sampler) override {
    return std::make_unique<Session>(*this, sampler, caches.offset());
  }

 private:
  class Session : public ScriptedSession {
   public:
    Session(const DrawingDrafter& drafter, const Sampler& sampler, std::int64_t frontier)
        : ScriptedSession({}, frontier), drafter_(drafter), sampler_(sampler) {}

    DraftProposal propose(std::int32_t anchor, std::int64_t max) override {
      tokens_.clear();
      drawn_.clear();
      uniform_.clear();
      for (std::int64_t i = 1; i <= max; ++i) {
        const std::array<double, kVocab>& row = kDraft[draft_row(anchor, i)];
        if (drafter_.rows_ == Rows::kDense) {
          std::copy(row.begin(), row.end(), drawn_.add_dense(kVocab).begin());
        } else {
          const auto best = static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
          const std::int32_t other = best == 0 ? 3 : 0;
          const std::array<std::int32_t, 2> ids = {std::min(best, other), std::max(best, other)};
          const std::array<float, 2> probs = {0.7f, 0.3f};
          drawn_.add_sparse(ids, probs);
        }
        std::fill_n(uniform_.add_dense(kVocab).begin(), kVocab, 0.2f);
        const auto slot = static_cast<std::uint64_t>(frontier() + i);
        tokens_.push_back(*drawn_.sample(i - 1, draw_uniform(sampler_.seed(), slot, Purpose::kProposal)));
      }
      return {tokens_, drafter_.honest_ ? &drawn_ : &uniform_};
    }

   private:
    const DrawingDrafter& drafter_;
    const Sampler& sampler_;
    std::vector<std::int32_t> tokens_;
    Distribution drawn_;
    Distribution uniform_;
  };

  Rows rows_;
  bool honest_;
};

TEST(ChiSquare, TheTailHasItsKnownValues) {
  EXPECT_NEAR(chi_square_tail(3.841459, 1), 0.05, 1e-7);
  EXPECT_NEAR(chi_square_tail(18.307038, 10), 0.05, 1e-7);
  EXPECT_NEAR(chi_square_tail(124.342113, 100), 0.05, 1e-7);
  EXPECT_NEAR(chi_square_tail(2.0, 2), std::exp(-1.0), 1e-14);
  EXPECT_NEAR(chi_square_tail(60.0, 2) / std::exp(-30.0), 1.0, 1e-10);
  EXPECT_EQ(chi_square_p_value(std::vector<std::int64_t>{50, 50, 1}, std::vector<double>{0.5, 0.5, 0.0}), 0.0);
}

TEST(Exactness, PlainSamplingFitsTheModel) {
  for (const AcceptMode mode : {AcceptMode::kCoupled, AcceptMode::kRejection}) {
    EXPECT_GT(p_value(nullptr, sampled(1), mode, 0), kFits) << accept_mode_name(mode);
  }
}

TEST(Exactness, RejectionWithDenseRows) { EXPECT_GT(p_value_with_dflash(sampled(1), AcceptMode::kRejection), kFits); }

TEST(Exactness, RejectionAtAnotherTemperature) {
  EXPECT_GT(p_value_with_dflash(sampled(0.6f), AcceptMode::kRejection), kFits);
}

TEST(Exactness, RejectionWithSparseRows) {
  EXPECT_GT(p_value_with_dflash(sampled(1, 3), AcceptMode::kRejection), kFits);
  EXPECT_GT(p_value_with_dflash(sampled(0.8f, 4, 0.85f, 0.15f), AcceptMode::kRejection), kFits);
}

TEST(Exactness, RejectionWithADenseTargetAndASparseDraft) {
  DrawingDrafter drafter(DrawingDrafter::Rows::kTopTwo, true);
  EXPECT_GT(p_value(&drafter, sampled(1), AcceptMode::kRejection, 3), kFits);
}

TEST(Exactness, RejectionWithASparseTargetAndADenseDraft) {
  DrawingDrafter drafter(DrawingDrafter::Rows::kDense, true);
  EXPECT_GT(p_value(&drafter, sampled(1, 3), AcceptMode::kRejection, 3), kFits);
}

TEST(Exactness, RejectionOfPickedDrafts) {
  ScriptedDrafter drafter(
      [](const ScriptedTurn& turn) { return std::vector<std::int32_t>(static_cast<std::size_t>(turn.max), 2); }, 7);
  EXPECT_GT(p_value(&drafter, sampled(1), AcceptMode::kRejection, 3), kFits);
}

TEST(Exactness, CoupledWithADraft) { EXPECT_GT(p_value_with_dflash(sampled(0.9f, 4), AcceptMode::kCoupled), kFits); }

// The test has teeth: dividing by probabilities the drafts were not drawn from is noticed, for either kind of target.
TEST(Exactness, AcceptanceByTheWrongProbabilitiesIsCaught) {
  DrawingDrafter dense(DrawingDrafter::Rows::kDense, false);
  EXPECT_LT(p_value(&dense, sampled(1), AcceptMode::kRejection, 3), kCaught);
  EXPECT_LT(p_value(&dense, sampled(1, 4), AcceptMode::kRejection, 3), kCaught);
}

TEST(Exactness, TheFirstTokenHasTheTargetsDistributionAndNotTheDrafts) {
  ScriptedDraft draft(other_markov(), 4, 1, kVocab);
  DFlashDrafter drafter(draft);
  ScriptedTarget target(markov(), kVocab);
  DecodeRequest request;
  request.prompt = {0, 2};
  request.budget = 3;
  request.depth = 2;
  request.params = sampled(1);
  request.mode = AcceptMode::kRejection;
  std::vector<std::int64_t> counts(kVocab);
  for (request.seed = 0; request.seed < 20000; ++request.seed) {
    ++counts[static_cast<std::size_t>(decode(target, &drafter, request).tokens[0])];
  }
  std::vector<double> right(kTarget[2].begin(), kTarget[2].end());
  EXPECT_GT(chi_square_p_value(counts, right), kFits);
  std::vector<double> draft_like(kDraft[draft_row(2, 1)].begin(), kDraft[draft_row(2, 1)].end());
  EXPECT_LT(chi_square_p_value(counts, draft_like), kCaught);
}

}  // namespace
}  // namespace drafthorse
