#include <gtest/gtest.h>

#include "bench/passes.h"
#include "bench/read_bandwidth.h"
#include "bench/stopwatch.h"
#include "bench/synthetic_model.h"
#include "support/error_text.h"
#include "support/scripted_target.h"
#include "support/test_machine.h"

namespace drafthorse {
namespace {

TEST(Median, IsTheMiddle) {
  EXPECT_EQ(median({}), 0.0);
  EXPECT_EQ(median({3}), 3.0);
  EXPECT_EQ(median({9, 1, 5}), 5.0);
  EXPECT_EQ(median({9, 1, 5, 7}), 6.0);
}

TEST(ReadBandwidth, IsMeasured) {
  ReadBandwidth bandwidth(test_exec());
  EXPECT_EQ(bandwidth.gb_per_second(), 0.0);
  bandwidth.measure();
  EXPECT_GT(bandwidth.gb_per_second(), 0.1);
  EXPECT_LT(bandwidth.gb_per_second(), 5000.0);
}

TEST(SyntheticModel, HasThePublishedShapes) {
  const TargetConfig small = synthetic_config("0.6b");
  const SyntheticTensors tensors(small);
  std::int64_t parameters = 0;
  for (const std::string& name : tensors.names()) {
    const TensorView& tensor = *tensors.find(name);
    EXPECT_EQ(tensor.bytes.size(), static_cast<std::size_t>(2 * tensor.elements())) << name;
    parameters += tensor.elements();
  }
  EXPECT_EQ(parameters, 596049920);  // as published for Qwen3-0.6B, tied
  EXPECT_EQ(tensors.find("model.layers.28.self_attn.q_proj.weight"), nullptr);
  EXPECT_EQ(synthetic_config("4b").hidden_size, 2560);
  expect_error([] { synthetic_config("7b"); }, {"--shape = 7b", "0.6b"});
}

TEST(SyntheticModel, LoadsAndComputesNumbers) {
  TargetConfig config = synthetic_config("0.6b");
  config.num_hidden_layers = 1;
  config.layer_types.resize(1);
  config.sliding_windows.resize(1);
  config.vocab_size = 512;
  const SyntheticTensors tensors(config);
  ModelOptions options;
  options.weights = WeightType::kQ8_0;
  options.context = kBenchContext + 64;
  const auto target = load_target(tensors, config, options, test_exec());
  PassTimer passes(*target);
  EXPECT_GT(passes.time(1), 0.0);
  EXPECT_GT(passes.time(16), 0.0);
}

TEST(PassTimer, LeavesTheCachesAsTheyWere) {
  ScriptedTarget target(hashed_rule(1, 2.0f), 8);
  PassTimer passes(target);
  passes.time(3);
  passes.time(1);
  EXPECT_EQ(target.calls[target.calls.size() - 2], (ScriptedTarget::Call{kBenchContext, 3}));
  EXPECT_EQ(target.calls.back(), (ScriptedTarget::Call{kBenchContext, 1}));
}

}  // namespace
}  // namespace drafthorse
