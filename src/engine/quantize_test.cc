#include "engine/quantize.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <set>
#include <string>

#include "base/json.h"
#include "base/mapped_file.h"
#include "engine/loaded_model.h"
#include "ops/machine.h"
#include "support/error_text.h"
#include "support/temp_folder.h"
#include "support/test_machine.h"
#include "support/tiny_checkpoint.h"

namespace drafthorse {
namespace {

class IdsOnly : public TokenSink {
 public:
  void emit(std::span<const std::int32_t>, std::string_view) override {}
};

/// Ids and logit bits of 40 tokens with the draft at its full depth.
GenerateResult generate(const std::string& target_path, const std::string& draft_path, const char* weights,
                        ExecContext& exec = test_exec()) {
  const TargetFiles target = open_target(target_path);
  const DraftFiles draft = open_draft(draft_path);
  LoadOptions options;
  options.weights = WeightsChoice::parse(weights);
  options.kv_type = ElementType::kBF16;
  LoadedModel model(target, &draft, options, exec);
  GenerateRequest request;
  request.prompt = {1, 2, 3, 4, 5};
  request.max_tokens = 40;
  request.ignore_eos = true;
  IdsOnly sink;
  return model.generator().generate(request, sink);
}

void expect_equal(const GenerateResult& found, const GenerateResult& expected) {
  EXPECT_EQ(found.ids, expected.ids);
  EXPECT_EQ(found.logits_hash, expected.logits_hash);
  EXPECT_EQ(found.stats.accepted, expected.stats.accepted);
  EXPECT_EQ(found.stats.drafted, expected.stats.drafted);
}

class Quantize : public testing::Test {
 protected:
  void write(const TinyCheckpoint& target, const TinyCheckpoint& draft, ElementType type = ElementType::kF32) {
    std::filesystem::create_directories(folder_ / "target");
    std::filesystem::create_directories(folder_ / "draft");
    target.write(folder_ / "target", type);
    draft.write(folder_ / "draft", type);
  }
  QuantizeResult quantize(const char* in, const char* out, const char* weights) {
    return quantize_folder(folder_ / in, folder_ / out, WeightsChoice::parse(weights), test_exec(), {});
  }
  TempFolder folder_;
};

class QuantizeType : public Quantize, public testing::WithParamInterface<const char*> {};

TEST_P(QuantizeType, APackedPairGivesTheBitsOfThePairItWasMadeFromUnderEveryIsa) {
  // Widths that are no multiple of 32, a head of its own, biases, and a draft with q, k and v in one tensor.
  TinyCheckpoint draft = tiny_draft({.intermediate = 100});
  for (const char* layer : {"layers.0.self_attn.", "layers.1.self_attn."}) {
    const std::string at = layer;
    draft.fuse({at + "q_proj.weight", at + "k_proj.weight", at + "v_proj.weight"}, at + "qkv_proj.weight");
  }
  write(tiny_target({.qwen2 = true, .heads = 2, .head_dim = 32, .intermediate = 100, .tied = false}), draft);
  quantize("target", "packed", GetParam());
  quantize("draft", "packed_draft", GetParam());
  for (const std::string& isa : runnable_isas()) {
    SCOPED_TRACE(isa);
    Machine machine(2, isa);
    const GenerateResult plain = generate(folder_ / "target", folder_ / "draft", GetParam(), machine.exec());
    expect_equal(generate(folder_ / "packed", folder_ / "packed_draft", "file", machine.exec()), plain);
    expect_equal(generate(folder_ / "packed", folder_ / "packed_draft", GetParam(), machine.exec()), plain);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, QuantizeType,
                         testing::Values("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k",
                                         "q6_k"),
                         [](const auto& type) { return std::string(type.param); });

TEST_F(Quantize, ATiedHeadIsPackedAndItsTableStays) {
  write(tiny_target({}), tiny_draft({}), ElementType::kBF16);
  const QuantizeResult result = quantize("target", "packed", "q8_0");
  EXPECT_EQ(result.layers, 3u * 4u + 1u);
  EXPECT_LT(result.after, result.before);
  const TargetFiles packed = open_target(folder_ / "packed");
  EXPECT_EQ(packed.tensors->find("model.embed_tokens.weight")->type, ElementType::kBF16);
  EXPECT_EQ(packed.tensors->find("model.layers.0.self_attn.q_proj.weight")->packed, WeightType::kQ8_0);
  expect_equal(generate(folder_ / "packed", folder_ / "draft", "file"),
               generate(folder_ / "target", folder_ / "draft", "q8_0"));
}

TEST_F(Quantize, FileKeepsTheTypesOfTheFile) {
  write(tiny_target({}), tiny_draft({}), ElementType::kBF16);
  quantize("target", "packed", "file");
  const TargetFiles packed = open_target(folder_ / "packed");
  for (const PackedStack& stack : packed.tensors->stacks()) EXPECT_EQ(stack.type, WeightType::kBF16);
  const LoadedModel model(packed, nullptr, {}, test_exec());
  EXPECT_EQ(model.weights_name(), "bf16");
  expect_equal(generate(folder_ / "packed", folder_ / "draft", "file"),
               generate(folder_ / "target", folder_ / "draft", "file"));
}

TEST_F(Quantize, SmallFilesAreCopiedAndOtherWeightsAreNot) {
  write(tiny_target({}), tiny_draft({}));
  folder_.write("target/LICENSE", "free");
  folder_.write("target/pytorch_model.bin", "weights");
  folder_.write("target/model.gguf", "weights");
  quantize("target", "packed", "q8_0");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "packed"))
    names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"LICENSE", "config.json", "model.safetensors"}));
}

TEST_F(Quantize, WhatIsPackedAlreadyIsRefused) {
  write(tiny_target({}), tiny_draft({}));
  quantize("target", "packed", "q8_0");
  expect_error([&] { quantize("packed", "again", "q4_k"); }, {"packed: is packed already (q8_0)", "made from"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "again"));
}

TEST_F(Quantize, APackedFolderIsHeldAsItIs) {
  write(tiny_target({}), tiny_draft({}));
  quantize("target", "packed", "q8_0");
  expect_error([&] { generate(folder_ / "packed", folder_ / "draft", "bf16"); }, {"--weights bf16", "packed as q8_0"});
}

TEST_F(Quantize, NothingOfTheUsersIsOverwritten) {
  write(tiny_target({}), tiny_draft({}));
  const std::string file = folder_.write("file", "mine");
  expect_error([&] { quantize("target", "draft", "q8_0"); }, {"draft: is not empty"});
  expect_error([&] { quantize("target", "target", "q8_0"); }, {"target: is not empty"});
  expect_error([&] { quantize("target", "file", "q8_0"); }, {"file: is there and is no folder"});
}

TEST_F(Quantize, ATargetThatCannotBeLoadedLeavesNothingBehind) {
  TinyCheckpoint broken = tiny_target({});
  broken.tensors.at("model.layers.2.mlp.down_proj.weight").values[7] = std::numeric_limits<float>::infinity();
  write(broken, tiny_draft({}));
  expect_error([&] { quantize("target", "packed", "q8_0"); }, {"down_proj.weight", "finite"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "packed"));
}

TEST_F(Quantize, AnotherConfigThanThePackedFilesIsRefused) {
  write(tiny_target({}), tiny_draft({}));
  quantize("target", "packed", "q8_0");
  // The same rows in all, parted in another way.
  Json config = tiny_target({}).config;
  config["num_attention_heads"] = 2;
  config["num_key_value_heads"] = 1;
  folder_.write("packed/config.json", config.dump());
  expect_error([&] { generate(folder_ / "packed", folder_ / "draft", "file"); }, {"q_proj.weight", "quantize"});
}

TEST_F(Quantize, DamagedStreamsNeverGiveAnIdOutsideTheVocabulary) {
  write(tiny_target({}), tiny_draft({}));
  quantize("target", "packed", "q8_0");
  const std::string file = folder_ / "packed/model.safetensors";
  std::string bytes = read_text_file(file);
  const std::size_t at = 8 + static_cast<unsigned char>(bytes[0]) + 256 * static_cast<unsigned char>(bytes[1]);
  for (std::size_t i = at; i < bytes.size(); ++i) bytes[i] = '\xff';  // scales that are no numbers
  folder_.write("packed/model.safetensors", bytes);
  try {
    for (const std::int32_t id : generate(folder_ / "packed", folder_ / "draft", "file").ids) {
      EXPECT_GE(id, 0);
      EXPECT_LT(id, 320);
    }
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("finite"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace drafthorse
