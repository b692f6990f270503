#include "engine/loaded_model.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/error_text.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"
#include "support/test_machine.h"
#include "support/tiny_checkpoint.h"
#include "support/tiny_tokenizer.h"

namespace drafthorse {
namespace {

TEST(WeightsChoice, ImpliesTheTypeOfTheCache) {
  EXPECT_EQ(WeightsChoice::parse("f32").kv_type(), ElementType::kF32);
  EXPECT_EQ(WeightsChoice::parse("exact").kv_type(), ElementType::kF32);
  EXPECT_EQ(WeightsChoice::parse("exact").type(), WeightType::kF32);
  EXPECT_EQ(WeightsChoice::parse("exact").name(), "exact");
  for (const char* name : {"file", "f16", "bf16", "q8_0"}) {
    EXPECT_EQ(WeightsChoice::parse(name).kv_type(), ElementType::kBF16) << name;
  }
  EXPECT_FALSE(WeightsChoice().type().has_value());
  expect_error([] { WeightsChoice::parse("q3"); }, {"--weights = q3", "q8_0"});
  expect_error([] { parse_kv_type("f16"); }, {"--kv = f16", "bf16"});
}

TEST(Memory, ANeedAboveWhatIsFreeIsAnErrorThatNamesBoth) {
  MemoryPlan plan;
  plan.target = {.weights = 3'000'000'000, .kv = 1'500'000'000, .scratch = 100'000'000};
  plan.draft = {.weights = 400'000'000, .kv = 0, .scratch = 0};
  EXPECT_NO_THROW(require_memory(plan, 5'000'000'000, "m"));
  try {
    require_memory(plan, 4'999'999'999, "m");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
    EXPECT_NE(std::string(error.what()).find("m: needs 5.0 GB (weights 3.4 GB"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("5.0 GB free"), std::string::npos) << error.what();
  }
}

/// A tiny target and draft on disk.
class LoadedModelTest : public testing::Test {
 protected:
  LoadedModelTest() {
    std::filesystem::create_directories(folder_ / "target");
    std::filesystem::create_directories(folder_ / "draft");
    tiny_target({}).write(folder_ / "target");
    tiny_draft({}).write(folder_ / "draft");
  }
  TempFolder folder_;
};

TEST_F(LoadedModelTest, StopIdsAreTheUnionOfAllThatIsDeclared) {
  TinyCheckpoint target = tiny_target({});
  target.config["eos_token_id"] = 5;
  target.write(folder_ / "target");
  folder_.write("target/generation_config.json", R"({"eos_token_id": [5, 6]})");
  Json tokenizer = byte_level_json();
  tokenizer["added_tokens"].push_back(added_token(300, "<end>"));
  folder_.write("target/tokenizer.json", tokenizer.dump());
  folder_.write("target/tokenizer_config.json", R"({"eos_token": "<end>"})");
  EXPECT_EQ(open_target(folder_ / "target").stop_ids, (std::vector<std::int32_t>{5, 6, 300}));
}

TEST_F(LoadedModelTest, ATargetWithoutATokenizerLoads) {
  const TargetFiles target = open_target(folder_ / "target");
  EXPECT_EQ(target.tokenizer, nullptr);
  const LoadedModel model(target, nullptr, {}, test_exec());
  EXPECT_EQ(model.weights_name(), "f32");  // what the file has
}

TEST_F(LoadedModelTest, ADraftForAnotherTargetIsRefusedBeforeAnythingIsRead) {
  tiny_draft({.target_layers = 5}).write(folder_ / "draft");
  const TargetFiles target = open_target(folder_ / "target");
  const DraftFiles draft = open_draft(folder_ / "draft");
  expect_error([&] { LoadedModel(target, &draft, {}, test_exec()); }, {"num_target_layers", "5", "3"});
}

TEST_F(LoadedModelTest, AContextIsAtMostTheModels) {
  const TargetFiles target = open_target(folder_ / "target");
  LoadOptions options;
  options.context = 1025;
  expect_error([&] { LoadedModel(target, nullptr, options, test_exec()); },
               {"--context = 1025", "max_position_embeddings = 1024"});
  options.context = 100;
  LoadedModel model(target, nullptr, options, test_exec());
  EXPECT_EQ(model.target().facts().context, 100);
}

TEST_F(LoadedModelTest, AChunkLongerThanTheContextNeedsNoMoreMemory) {
  const TargetFiles target = open_target(folder_ / "target");
  const DraftFiles draft = open_draft(folder_ / "draft");
  LoadOptions options;
  options.context = 16;
  options.chunk = 16;
  const std::uint64_t need = plan_memory(target, &draft, options).total();
  options.chunk = 1 << 20;
  EXPECT_EQ(plan_memory(target, &draft, options).total(), need);
}

TEST_F(LoadedModelTest, TheMemoryPlanGrowsWithTheContext) {
  const TargetFiles target = open_target(folder_ / "target");
  const DraftFiles draft = open_draft(folder_ / "draft");
  LoadOptions small;
  small.context = 64;
  LoadOptions large;
  large.context = 1024;
  const MemoryPlan plan = plan_memory(target, &draft, large);
  EXPECT_GT(plan.target.kv, 0u);
  EXPECT_GT(plan.draft.kv, 0u);
  EXPECT_GE(plan.target.kv, 8 * plan_memory(target, &draft, small).target.kv);
  EXPECT_EQ(plan_memory(target, nullptr, large).draft.weights, 0u);
}

}  // namespace
}  // namespace drafthorse
