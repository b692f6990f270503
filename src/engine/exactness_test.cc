#include "engine/exactness.h"

#include <gtest/gtest.h>

#include "engine/loaded_model.h"
#include "support/error_text.h"
#include "support/row_dependent_table.h"
#include "support/scripted_drafter.h"
#include "support/scripted_target.h"
#include "support/shared_data.h"
#include "support/test_machine.h"

namespace drafthorse {
namespace {

constexpr std::int64_t kVocab = 32;

ExactnessPlan small_plan() {
  ExactnessPlan plan;
  plan.prompts = {{1, 2, 3}, {4}, {5, 6, 7, 8, 9, 10, 11}};
  plan.request.max_tokens = 24;
  plan.depths = {1, 3, 7};
  plan.chunks = {2, 512};
  return plan;
}

TEST(ExactnessCheck, AHonestPairIsEqualAndEverythingIsCompared) {
  ScriptedTarget target(hashed_rule(1, 4.0f), kVocab);
  ScriptedDrafter drafter(
      [](const ScriptedTurn& turn) { return std::vector<std::int32_t>(static_cast<std::size_t>(turn.max), 3); }, 7);
  Generator generator({target, &drafter, nullptr, {}, test_exec()});
  ExactnessCheck check(small_plan());
  check.run(generator, "scripted");
  const ExactnessReport& report = check.report();
  EXPECT_TRUE(report.equal());
  // 3 prompts x 2 chunks x (plain + 3 depths) x (hash, no hash), all but the reference itself.
  EXPECT_EQ(report.runs, 3 * 2 * 4 * 2 - 3);
  EXPECT_EQ(report.tokens_compared, 24 * report.runs);
  EXPECT_GT(report.drafted, 0);
  EXPECT_GT(report.speed_up(), 0.0);
}

/// Takes another choice in passes of several rows that end at a certain position.
class RowDependentTarget : public ScriptedTarget {
 public:
  using ScriptedTarget::ScriptedTarget;
  ForwardResult forward(const ForwardBatch& batch) override {
    const std::int64_t start = batch.sequences[0].caches->offset();
    const ForwardResult result = ScriptedTarget::forward(batch);
    if (result.hidden.rows > 1 && start >= 12) const_cast<float*>(result.hidden.data)[0] += shift;
    return result;
  }
  float shift = 0.0f;
};

TEST(ExactnessCheck, TheFirstTokenThatDiffersIsNamed) {
  RowDependentTarget target(hashed_rule(1, 4.0f), kVocab);
  target.shift = 100.0f;
  ScriptedDrafter drafter(
      [](const ScriptedTurn& turn) { return std::vector<std::int32_t>(static_cast<std::size_t>(turn.max), 3); }, 7);
  Generator generator({target, &drafter, nullptr, {}, test_exec()});
  ExactnessCheck check(small_plan());
  check.run(generator, "scripted");
  EXPECT_FALSE(check.report().equal());
  const Difference& first = check.report().first.value();
  EXPECT_EQ(first.where, "scripted, chunk 2, depth 1");
  EXPECT_EQ(first.prompt, 0u);
  EXPECT_EQ(first.position, 10);  // slot 13 is chosen by the row at slot 12
  EXPECT_EQ(first.found, 0);
  EXPECT_NE(first.expected, 0);
  EXPECT_FALSE(first.logits);
}

TEST(ExactnessCheck, LogitsThatDifferBehindEqualIdsAreSeen) {
  RowDependentTarget target(hashed_rule(1, 4.0f), kVocab);
  target.shift = 1e-6f;
  ScriptedDrafter drafter(
      [](const ScriptedTurn& turn) { return std::vector<std::int32_t>(static_cast<std::size_t>(turn.max), 3); }, 7);
  Generator generator({target, &drafter, nullptr, {}, test_exec()});
  ExactnessCheck check(small_plan());
  check.run(generator, "scripted");
  ASSERT_FALSE(check.report().equal());
  EXPECT_TRUE(check.report().first->logits);
  EXPECT_EQ(check.report().first->position, 24);
}

TEST(ExactnessCheck, AnotherMachineIsComparedWithTheFirstUntilANewReferenceIsAskedFor) {
  ExactnessCheck check(small_plan());
  ScriptedDrafter drafter([](const ScriptedTurn&) { return std::vector<std::int32_t>{1}; }, 7);
  ScriptedTarget one(hashed_rule(1, 4.0f), kVocab);
  ScriptedTarget other(hashed_rule(2, 4.0f), kVocab);
  Generator first({one, &drafter, nullptr, {}, test_exec()});
  Generator second({other, &drafter, nullptr, {}, test_exec()});
  check.run(first, "one");
  ASSERT_TRUE(check.report().equal());
  check.new_reference();
  check.run(second, "other");
  ASSERT_TRUE(check.report().equal());
  check.run(first, "one again");
  EXPECT_FALSE(check.report().equal());
  EXPECT_EQ(check.report().first->where, "one again, chunk 2, plain");
}

TEST(ExactnessCheck, RejectionCannotBeComparedAndCoupledCan) {
  ExactnessPlan plan = small_plan();
  plan.request.sampling.temperature = 0.8f;
  expect_error([&] { ExactnessCheck check(plan); }, {"rejection", "--seed", "--accept coupled"});
  plan.request.accept = AcceptMode::kCoupled;
  ScriptedTarget target(hashed_rule(1, 2.0f), kVocab);
  ScriptedDrafter drafter(
      [](const ScriptedTurn& turn) { return std::vector<std::int32_t>(static_cast<std::size_t>(turn.max), 3); }, 7);
  Generator generator({target, &drafter, nullptr, {}, test_exec()});
  ExactnessCheck check(plan);  // without a seed: one is drawn for all runs
  check.run(generator, "scripted");
  EXPECT_TRUE(check.report().equal());
}

/// The demonstration pair on a table of kernels.
ExactnessReport check_demo_pair(const KernelTable& table, const char* weights) {
  ThreadPool pool(1);
  ExecContext exec{pool, table};
  const TargetFiles target = open_target(project_path("models/demo/target"));
  const DraftFiles draft = open_draft(project_path("models/demo/dflash"));
  LoadOptions options;
  options.weights = WeightsChoice::parse(weights);
  LoadedModel model(target, &draft, options, exec);
  Generator generator = model.generator();
  ExactnessPlan plan;
  plan.prompts = {target.tokenizer->encode("def add(a, b):\n"), target.tokenizer->encode("import")};
  plan.request.max_tokens = 24;
  plan.request.ignore_eos = true;
  plan.depths = {7};
  plan.chunks = {512};
  ExactnessCheck check(plan);
  check.run(generator, table.name);
  return check.report();
}

TEST(ExactnessCheck, ATableWhoseBitsDependOnTheRowCountIsFoundOut) {
  for (const char* weights : {"f32", "bf16", "q8_0"}) {
    EXPECT_TRUE(check_demo_pair(kernel_table(), weights).equal()) << weights;
    EXPECT_FALSE(check_demo_pair(row_dependent_table(), weights).equal()) << weights;
  }
}

}  // namespace
}  // namespace drafthorse
