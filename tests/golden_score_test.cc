// Scores of whole texts against the logits other software computed for them.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "engine/loaded_model.h"
#include "engine/score.h"
#include "support/reference_values.h"
#include "support/shared_data.h"
#include "support/test_machine.h"

namespace drafthorse {
namespace {

class GoldenScore : public testing::TestWithParam<const char*> {};

TEST_P(GoldenScore, IsWhatTheReferenceLogitsSay) {
  DRAFTHORSE_NEEDS_SHARED(folder, std::string("golden/targets/") + GetParam());
  constexpr double kBound = 2e-4;  // of logits: float32 against float32
  const ReferenceValues expected(folder + "/expect.safetensors");
  const RowCopy logits = expected.rows("logits");
  const std::vector<std::int32_t> ids = expected.ints("ids");
  const TargetFiles files = open_target(folder);
  LoadOptions options;
  options.weights = WeightsChoice::parse("f32");
  LoadedModel model(files, nullptr, options, test_exec());
  const Score score = score_ids(model.target(), model.exec(), ids, 5);
  ASSERT_EQ(score.top.size(), ids.size());
  ASSERT_EQ(score.nll.size() + 1, ids.size());
  for (std::int64_t t = 0; t < logits.rows; ++t) {
    const auto row = logits.row(t);
    const Score::Top& top = score.top[static_cast<std::size_t>(t)];
    for (std::size_t k = 0; k < top.ids.size(); ++k) {
      EXPECT_NEAR(top.logits[k], row[static_cast<std::size_t>(top.ids[k])], kBound) << t;
    }
    if (t + 1 == logits.rows) break;
    const double sum = std::accumulate(row.begin(), row.end(), 0.0,
                                       [](double all, float x) { return all + std::exp(static_cast<double>(x)); });
    const auto next = static_cast<std::size_t>(ids[static_cast<std::size_t>(t + 1)]);
    EXPECT_NEAR(score.nll[static_cast<std::size_t>(t)], std::log(sum) - static_cast<double>(row[next]), 2 * kBound);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, GoldenScore, testing::Values("qwen2", "qwen2-yarn-untied", "qwen3", "qwen3-untied"));

}  // namespace
}  // namespace drafthorse
