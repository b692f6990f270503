// The demonstration pair that comes with the program, from the prompt to the last statistic: what is promised must hold
// on trained weights.

#include <gtest/gtest.h>

#include <memory>

#include "base/json.h"
#include "engine/exactness.h"
#include "engine/loaded_model.h"
#include "support/shared_data.h"
#include "support/test_machine.h"

namespace drafthorse {
namespace {

class SilentSink : public TokenSink {
 public:
  void emit(std::span<const std::int32_t>, std::string_view) override {}
};

/// The pair, loaded once for each weight type.
class DemoPair {
 public:
  explicit DemoPair(const std::string& weights)
      : target_(open_target(project_path("models/demo/target"))),
        draft_(open_draft(project_path("models/demo/dflash"))) {
    LoadOptions options;
    options.weights = WeightsChoice::parse(weights);
    model_ = std::make_unique<LoadedModel>(target_, &draft_, options, test_exec());
  }

  GenerateRequest request(const std::string& prompt, std::int64_t tokens) const {
    GenerateRequest request{.prompt = target_.tokenizer->encode(prompt), .max_tokens = tokens};
    return request;
  }
  GenerateResult run(const GenerateRequest& request) {
    SilentSink sink;
    return model_->generator().generate(request, sink);
  }
  LoadedModel& model() { return *model_; }

 private:
  TargetFiles target_;
  DraftFiles draft_;
  std::unique_ptr<LoadedModel> model_;
};

DemoPair& pair_at(const std::string& weights) {
  static std::map<std::string, std::unique_ptr<DemoPair>> pairs;
  auto& pair = pairs[weights];
  if (!pair) pair = std::make_unique<DemoPair>(weights);
  return *pair;
}

TEST(DemoPairRun, TheDraftNeverShowsInTheIdsOrTheLogits) {
  for (const char* weights : {"f32", "bf16", "q8_0"}) {
    DemoPair& pair = pair_at(weights);
    for (const char* prompt :
         {"def add(a, b):\n", "import os\nimport", "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"}) {
      GenerateRequest request = pair.request(prompt, 60);
      request.ignore_eos = true;
      request.draft = false;
      const GenerateResult plain = pair.run(request);
      ASSERT_EQ(plain.ids.size(), 60u);
      request.draft = true;
      for (const std::int64_t depth : {0, 1, 3, 7, 15}) {
        request.depth = depth;
        const GenerateResult drafted = pair.run(request);
        EXPECT_EQ(drafted.ids, plain.ids) << weights << " depth " << depth;
        EXPECT_EQ(drafted.logits_hash, plain.logits_hash) << weights << " depth " << depth;
        EXPECT_EQ(drafted.text, plain.text);
        EXPECT_EQ(drafted.depth, std::min<std::int64_t>(depth, 7));
        EXPECT_EQ(drafted.notes.size(), depth > 7 ? 1u : 0u);
        EXPECT_EQ(drafted.stats.drafted > 0, depth > 0);
      }
    }
  }
}

TEST(DemoPairRun, TheDraftIsAcceptedAtItsDefaultDepth) {
  const GenerateResult result = pair_at("bf16").run(pair_at("bf16").request("import os\nimport sys\n", 100));
  EXPECT_EQ(result.depth, 7);  // block_size - 1
  EXPECT_GT(result.stats.drafted, 0);
  EXPECT_GT(result.stats.accepted, 5);
  EXPECT_EQ(result.stats.rounds + result.stats.accepted, std::ssize(result.ids));
}

TEST(DemoPairRun, ASecondRequestIsLikeOneInAFreshProcess) {
  DemoPair& shared = pair_at("bf16");
  const std::string long_prompt =
      "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n";
  for (const std::string& prompt : {long_prompt, std::string("a"), long_prompt}) {
    const GenerateResult here = shared.run(shared.request(prompt, 40));
    DemoPair fresh("bf16");
    const GenerateResult there = fresh.run(fresh.request(prompt, 40));
    EXPECT_EQ(here.ids, there.ids);
    EXPECT_EQ(here.logits_hash, there.logits_hash);
    EXPECT_EQ(here.stats.drafted, there.stats.drafted);
    EXPECT_EQ(here.stats.accepted, there.stats.accepted);
    EXPECT_EQ(here.stats.lengths, there.stats.lengths);
  }
}

TEST(DemoPairRun, SeededSamplingGivesTheSameIdsAtEveryDepth) {
  DemoPair& pair = pair_at("bf16");
  GenerateRequest request = pair.request("import os\n", 60);
  request.sampling.temperature = 0.8f;
  request.sampling.seed = 7;
  request.draft = false;
  const GenerateResult plain = pair.run(request);
  EXPECT_EQ(plain.randomness->mode, AcceptMode::kCoupled);
  EXPECT_EQ(plain.randomness->seed, 7u);
  request.draft = true;
  std::int64_t accepted = 0;
  for (const std::int64_t depth : {0, 1, 2, 3, 5, 7}) {
    request.depth = depth;
    const GenerateResult drafted = pair.run(request);
    EXPECT_EQ(drafted.ids, plain.ids) << depth;
    EXPECT_EQ(drafted.logits_hash, plain.logits_hash) << depth;
    accepted += drafted.stats.accepted;
  }
  EXPECT_GT(accepted, 0);
  request.sampling.seed = 8;
  EXPECT_NE(pair.run(request).ids, plain.ids);
}

TEST(DemoPairRun, AnUnseededRunCanBeRepeatedWithWhatItReports) {
  DemoPair& pair = pair_at("bf16");
  GenerateRequest request = pair.request("import os\n", 40);
  request.sampling.temperature = 1.0f;
  const GenerateResult first = pair.run(request);
  ASSERT_TRUE(first.randomness.has_value());
  EXPECT_EQ(first.randomness->mode, AcceptMode::kRejection);
  request.sampling.seed = first.randomness->seed;
  request.accept = first.randomness->mode;
  const GenerateResult again = pair.run(request);
  EXPECT_EQ(again.ids, first.ids);
  EXPECT_EQ(again.stats.accepted, first.stats.accepted);
}

TEST(DemoPairRun, ATextOfTheModelEndsAtItsStopIdWithAndWithoutTheDraft) {
  DemoPair& pair = pair_at("bf16");
  GenerateRequest request = pair.request("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n", 200);
  const GenerateResult drafted = pair.run(request);
  request.draft = false;
  const GenerateResult plain = pair.run(request);
  EXPECT_EQ(drafted.finish_reason, plain.finish_reason);
  EXPECT_EQ(drafted.ids, plain.ids);
  if (drafted.finish_reason != FinishReason::kStop) GTEST_SKIP() << "this model talks for more than 200 tokens";
  EXPECT_EQ(drafted.text, pair.model().files().tokenizer->decode(std::span(drafted.ids).first(drafted.ids.size() - 1)));
}

TEST(DemoPairRun, ChunksOfThePromptDoNotShow) {
  DemoPair& pair = pair_at("q8_0");
  std::string prompt;
  for (int i = 0; i < 40; ++i) prompt += "x_" + std::to_string(i) + " = " + std::to_string(i * 7) + "\n";
  GenerateRequest request = pair.request(prompt, 30);
  ASSERT_GT(request.prompt.size(), 130u);
  const GenerateResult whole = pair.run(request);
  for (const std::int64_t chunk : {1, 7, 32}) {
    request.chunk = chunk;
    const GenerateResult cut = pair.run(request);
    EXPECT_EQ(cut.ids, whole.ids) << chunk;
    EXPECT_EQ(cut.logits_hash, whole.logits_hash) << chunk;
    EXPECT_EQ(cut.stats.lengths, whole.stats.lengths) << chunk;
  }
}

// Greedy runs of the same networks in other software (float32). Near ties may fall the other way, so ids are compared
// up to the first.
TEST(DemoPairRun, RoundsAreThoseOfTheReference) {
  DRAFTHORSE_NEEDS_SHARED(path, "golden/demo.json");
  const Json golden = read_json_file(path);
  constexpr double kNearTie = 0.02;
  DemoPair& pair = pair_at("f32");
  int checked = 0;
  for (const Json& prompt : golden["prompts"]) {
    if (++checked > 4) break;
    GenerateRequest request{.prompt = prompt["ids"].get<std::vector<std::int32_t>>(),
                            .max_tokens = golden["max_new_tokens"].get<std::int64_t>()};
    const GenerateResult result = pair.run(request);
    const auto greedy = prompt["greedy"].get<std::vector<std::int32_t>>();
    const auto margins = prompt["margin"].get<std::vector<double>>();
    std::size_t sure = 0;
    while (sure < margins.size() && margins[sure] >= kNearTie) ++sure;
    for (std::size_t i = 0; i < std::min(sure, greedy.size()); ++i)
      ASSERT_EQ(result.ids.at(i), greedy[i]) << checked << " " << i;
    const auto lengths = prompt["dflash"]["lengths"].get<std::vector<std::int64_t>>();
    const auto draft_margins = prompt["dflash"]["draft_margin"].get<std::vector<double>>();
    std::size_t emitted = 0;
    for (std::size_t round = 0; round < lengths.size(); ++round) {
      emitted += static_cast<std::size_t>(lengths[round]);
      if (draft_margins[round] < kNearTie || emitted > sure) break;
      ASSERT_EQ(result.stats.lengths.at(round), lengths[round]) << checked << " round " << round;
    }
  }
}

}  // namespace
}  // namespace drafthorse
