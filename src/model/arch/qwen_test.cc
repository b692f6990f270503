#include "model/arch/qwen.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "support/error_text.h"
#include "support/loaded_network.h"
#include "support/reference_values.h"
#include "support/temp_folder.h"
#include "support/test_machine.h"
#include "support/tiny_checkpoint.h"

namespace drafthorse {
namespace {

std::vector<std::int32_t> some_ids(std::size_t count) {
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back(static_cast<std::int32_t>(splitmix64(5, i) % 320));
  return ids;
}

class Qwen : public testing::Test {
 protected:
  LoadedTarget load(const TinyCheckpoint& checkpoint, const ModelOptions& options = exact_options(),
                    ElementType type = ElementType::kF32) {
    checkpoint.write(folder_.path(), type);
    return LoadedTarget(folder_.path(), options, test_exec());
  }
  RowCopy logits(const LoadedTarget& target, std::span<const std::int32_t> ids) {
    const auto caches = target.model->make_caches();
    const PassCopy pass = forward_one(*target.model, *caches, ids);
    return logits_of(*target.model, pass.hidden.view(), target.model->facts().vocab_width);
  }
  RowCopy logits(const TinyCheckpoint& checkpoint, std::span<const std::int32_t> ids) {
    return logits(load(checkpoint), ids);
  }

  TempFolder folder_;
};

TEST_F(Qwen, ATapIsTheResidualStreamAfterItsLayer) {
  // Layer i adds 10^i to every value of the residual: values are 1 whatever the keys are, and o_proj makes 10^i of
  // them.
  TinyCheckpoint checkpoint = tiny_target({.qwen2 = true, .layers = 4});
  for (auto& [name, tensor] : checkpoint.tensors) {
    const bool zero = name.ends_with("v_proj.weight") || name.ends_with("o_proj.weight") ||
                      name.ends_with("down_proj.weight") || name.ends_with("embed_tokens.weight");
    if (zero) std::fill(tensor.values.begin(), tensor.values.end(), 0.0f);
    if (name.ends_with("v_proj.bias")) std::fill(tensor.values.begin(), tensor.values.end(), 1.0f);
  }
  for (int layer = 0; layer < 4; ++layer) {
    TinyTensor& o = checkpoint.tensors.at("model.layers." + std::to_string(layer) + ".self_attn.o_proj.weight");
    for (std::size_t row = 0; row < 64; ++row) o.values[row * 64] = std::pow(10.0f, static_cast<float>(layer));
  }
  LoadedTarget target = load(checkpoint);
  const auto caches = target.model->make_caches();
  const std::vector<std::int64_t> taps = {0, 1, 3};
  const PassCopy pass = forward_one(*target.model, *caches, some_ids(5), taps);
  ASSERT_EQ(pass.taps.cols, 3 * 64);
  for (std::int64_t row = 0; row < 5; ++row) {
    for (std::size_t i = 0; i < 64; ++i) {
      EXPECT_NEAR(pass.taps.row(row)[i], 1.0f, 1e-5f);
      EXPECT_NEAR(pass.taps.row(row)[64 + i], 11.0f, 1e-4f);
      EXPECT_NEAR(pass.taps.row(row)[128 + i], 1111.0f, 1e-2f);
    }
  }
}

TEST_F(Qwen, TapsOutsideTheModelOrOutOfOrderAreBugs) {
  LoadedTarget target = load(tiny_target({}));
  const auto caches = target.model->make_caches();
  for (const std::vector<std::int64_t>& taps : {std::vector<std::int64_t>{3}, {-1}, {1, 0}, {1, 1}}) {
    EXPECT_THROW(forward_one(*target.model, *caches, some_ids(2), taps), InternalError);
  }
  EXPECT_EQ(caches->offset(), 0);
}

TEST_F(Qwen, ASlidingLayerSeesExactlyItsWindow) {
  // One layer of window 8: the last row's logits depend on the last 8 tokens and on nothing before them.
  constexpr std::size_t kLength = 40;
  for (const bool qwen2 : {false, true}) {
    LoadedTarget target = load(tiny_target({.qwen2 = qwen2, .layers = 1, .windows = {8}}));
    const auto ids = some_ids(kLength);
    const RowCopy original = logits(target, ids);
    for (std::size_t changed = kLength - 12; changed < kLength - 1; ++changed) {
      auto other = ids;
      other[changed] = (other[changed] + 1) % 320;
      const RowCopy now = logits(target, other);
      const bool seen = kLength - 1 - changed < 8;
      const bool equal =
          std::equal(now.row(kLength - 1).begin(), now.row(kLength - 1).end(), original.row(kLength - 1).begin());
      EXPECT_EQ(equal, !seen) << "token " << changed;
    }
  }
}

TEST_F(Qwen, AWindowLongerThanTheTextIsNoWindow) {
  TinyCheckpoint full = tiny_target({.layers = 2});
  TinyCheckpoint sliding = full;
  sliding.config = tiny_target({.layers = 2, .windows = {64, 64}}).config;
  const auto ids = some_ids(64);
  EXPECT_EQ(logits(sliding, ids), logits(full, ids));
  const auto longer = some_ids(65);
  EXPECT_NE(logits(sliding, longer), logits(full, longer));
}

TEST_F(Qwen, TheHeadIsTheOneTheConfigAndTheFileAgreeOn) {
  const auto ids = some_ids(6);
  const TinyCheckpoint tied = tiny_target({.tied = true});
  const TinyCheckpoint untied = tiny_target({.tied = false});
  const RowCopy by_table = logits(tied, ids);
  const RowCopy by_head = logits(untied, ids);
  EXPECT_NE(by_table, by_head);

  TinyCheckpoint both = untied;  // tied, and a head that is not used
  both.config["tie_word_embeddings"] = true;
  EXPECT_EQ(logits(both, ids), by_table);

  TinyCheckpoint silent = untied;
  silent.config.erase("tie_word_embeddings");
  EXPECT_EQ(logits(silent, ids), by_head);
  silent.tensors.erase("lm_head.weight");
  EXPECT_EQ(logits(silent, ids), by_table);

  TinyCheckpoint missing = untied;
  missing.tensors.erase("lm_head.weight");
  expect_error([&] { load(missing); }, {"lm_head.weight", "tie_word_embeddings"});
}

TEST_F(Qwen, ATextNetworkInAContainerIsFoundAndItsVisionPartsArePassedOver) {
  const TinyCheckpoint plain = tiny_target({});
  TinyCheckpoint container = plain;
  for (const auto& [name, tensor] : plain.tensors) container.rename(name, "language_model." + name);
  container.add("vision_tower.patch.weight", {3, 3}, 0.0f, 1.0f);
  EXPECT_EQ(logits(container, some_ids(6)), logits(plain, some_ids(6)));
}

TEST_F(Qwen, MissingMisshapenAndLeftOverTensorsAreNamed) {
  TinyCheckpoint missing = tiny_target({});
  missing.tensors.erase("model.layers.1.self_attn.k_norm.weight");
  expect_error([&] { load(missing); }, {"model.layers.1.self_attn.k_norm.weight", "[32]", "missing", "layer 1"});

  TinyCheckpoint misshapen = tiny_target({});
  misshapen.tensors.at("model.layers.0.mlp.up_proj.weight").shape = {64, 96};
  expect_error([&] { load(misshapen); }, {"model.layers.0.mlp.up_proj.weight", "[64, 96]", "[96, 64]"});

  TinyCheckpoint extra = tiny_target({});
  extra.add("model.layers.0.self_attn.q_proj.bias", {128}, 0.0f, 1.0f);
  expect_error([&] { load(extra); }, {"model.layers.0.self_attn.q_proj.bias", "not part of"});

  TinyCheckpoint biased = tiny_target({.qwen2 = true});
  biased.tensors.erase("model.layers.2.self_attn.v_proj.bias");
  expect_error([&] { load(biased); }, {"model.layers.2.self_attn.v_proj.bias", "missing"});

  TinyCheckpoint infinite = tiny_target({});
  infinite.tensors.at("model.layers.2.mlp.down_proj.weight").values[7] = INFINITY;
  expect_error([&] { load(infinite); }, {"model.layers.2.mlp.down_proj.weight"});
}

TEST_F(Qwen, WeightsKeepTheFilesTypeUnlessToldOtherwise) {
  const TinyCheckpoint checkpoint = tiny_target({});
  const auto ids = some_ids(9);
  ModelOptions natural = exact_options();
  natural.weights.reset();
  ModelOptions bf16 = exact_options();
  bf16.weights = WeightType::kBF16;
  EXPECT_EQ(logits(load(checkpoint, natural), ids), logits(load(checkpoint), ids));
  EXPECT_EQ(logits(load(checkpoint, natural, ElementType::kBF16), ids),
            logits(load(checkpoint, bf16, ElementType::kBF16), ids));
  EXPECT_NE(logits(load(checkpoint, natural, ElementType::kBF16), ids), logits(load(checkpoint), ids));
}

TEST_F(Qwen, QuantisedWeightsAndRoundedCachesStayNearTheExactOnes) {
  const TinyCheckpoint checkpoint = tiny_target({});
  const auto ids = some_ids(40);
  const RowCopy exact = logits(checkpoint, ids);
  for (const WeightType type : {WeightType::kF16, WeightType::kBF16, WeightType::kQ8_0}) {
    ModelOptions options = exact_options();
    options.weights = type;
    options.kv_type = ElementType::kBF16;
    const RowCopy rounded = logits(load(checkpoint, options), ids);
    EXPECT_NE(rounded, exact);
    expect_close(rounded, exact, 0.5, std::string(weight_name(type)));
  }
}

TEST_F(Qwen, ThePassThatWouldLeaveTheContextIsRefused) {
  ModelOptions options = exact_options();
  options.context = 20;
  LoadedTarget target = load(tiny_target({}), options);
  EXPECT_EQ(target.model->facts().context, 20);
  const auto caches = target.model->make_caches();
  forward_one(*target.model, *caches, some_ids(18));
  EXPECT_THROW(forward_one(*target.model, *caches, some_ids(3)), InternalError);
  EXPECT_EQ(caches->offset(), 18);
  forward_one(*target.model, *caches, some_ids(2));
  EXPECT_EQ(caches->offset(), 20);
}

TEST_F(Qwen, AnIdOutsideTheVocabularyIsRefused) {
  LoadedTarget target = load(tiny_target({}));
  const auto caches = target.model->make_caches();
  for (const std::int32_t id : {-1, 320}) {
    EXPECT_THROW(forward_one(*target.model, *caches, std::vector<std::int32_t>{3, id}), InternalError);
    EXPECT_EQ(caches->offset(), 0);
  }
}

TEST_F(Qwen, ProgressEndsAtThePackedBytesAndTheEstimateHoldsThem) {
  const TinyCheckpoint checkpoint = tiny_target({.qwen2 = true, .tied = false});
  checkpoint.write(folder_.path());
  ModelOptions options = exact_options();
  options.weights = WeightType::kQ8_0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> steps;
  options.progress = [&](std::uint64_t done, std::uint64_t all) { steps.emplace_back(done, all); };
  LoadedTarget target(folder_.path(), options, test_exec());
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(steps.back().first, steps.back().second);
  for (std::size_t i = 1; i < steps.size(); ++i) EXPECT_LT(steps[i - 1].first, steps[i].first);
  const MemoryNeed need = target_memory(*target.tensors, target.config, options, 32);
  EXPECT_GE(need.weights, steps.back().first);
  const auto caches = target.model->make_caches();
  forward_one(*target.model, *caches, some_ids(64));
  EXPECT_EQ(need.kv, caches->bytes() * 1024 / 64);
  EXPECT_GT(need.scratch, std::uint64_t{32} * 4 * (4 * 64 + 2 * 96));
}

}  // namespace
}  // namespace drafthorse
