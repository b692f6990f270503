#include "checkpoint/target_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/folder.h"
#include "support/error_text.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace drafthorse {
namespace {

using testing::Each;
using testing::ElementsAre;
constexpr auto kFull = LayerType::kFullAttention;
constexpr auto kSliding = LayerType::kSlidingAttention;

/// A valid Qwen3 config; `patch` is laid over it, and null removes a key.
Json qwen3(const std::string& patch = "{}") {
  Json config =
      parse_json(R"({"architectures":["Qwen3ForCausalLM"],"model_type":"qwen3","hidden_size":64,"num_hidden_layers":4,
      "vocab_size":320,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":32,"intermediate_size":160,"rms_norm_eps":1e-5,
      "rope_theta":1e6,"max_position_embeddings":512,"hidden_act":"silu"})",
                 "test");
  config.merge_patch(parse_json(patch, "test"));
  return config;
}
Json qwen2(const std::string& patch = "{}") {
  Json config = qwen3(R"({"architectures":["Qwen2ForCausalLM"],"model_type":"qwen2","head_dim":null})");
  config.merge_patch(parse_json(patch, "test"));
  return config;
}

TargetConfig parse(const Json& config) { return parse_target_config(config, "m/config.json"); }

void refuses(const Json& config, std::initializer_list<const char*> parts) {
  SCOPED_TRACE(config.dump());
  const std::string text = error_text([&] { parse(config); });
  EXPECT_TRUE(text.starts_with("m/config.json: ")) << text;
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}
void refuses(const char* patch, std::initializer_list<const char*> parts) { refuses(qwen3(patch), parts); }

TEST(TargetConfig, ReadsWhatTheFileSays) {
  const TargetConfig config = parse(qwen3(R"({"tie_word_embeddings":true})"));
  EXPECT_EQ(config.family, TargetFamily::kQwen3);
  EXPECT_EQ(config.architecture, "Qwen3ForCausalLM");
  EXPECT_EQ(config.source, "m/config.json");
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.num_hidden_layers, 4);
  EXPECT_EQ(config.vocab_size, 320);
  EXPECT_EQ(config.num_attention_heads, 4);
  EXPECT_EQ(config.num_key_value_heads, 2);
  EXPECT_EQ(config.head_dim, 32);
  EXPECT_EQ(config.intermediate_size, 160);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.max_position_embeddings, 512);
  EXPECT_EQ(config.rope.theta, 1e6);
  EXPECT_EQ(config.rope.rotary_dims, 32);
  EXPECT_EQ(config.tie_word_embeddings, true);
  EXPECT_THAT(config.layer_types, ElementsAre(kFull, kFull, kFull, kFull));
  EXPECT_THAT(config.sliding_windows, Each(0));
}

TEST(TargetConfig, Qwen3DefaultsAreItsOwn) {
  const TargetConfig config = parse(qwen3(
      R"({"num_key_value_heads":null,"head_dim":null,"rms_norm_eps":null,"rope_theta":null,"max_position_embeddings":null})"));
  EXPECT_EQ(config.num_key_value_heads, 4);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_EQ(config.rope.theta, 10000.0);
  EXPECT_EQ(config.max_position_embeddings, 32768);
  EXPECT_FALSE(config.tie_word_embeddings.has_value());
  EXPECT_TRUE(config.qk_norm);
  EXPECT_FALSE(config.attention_bias_qkv);
  EXPECT_FALSE(config.attention_bias_o);
}

TEST(TargetConfig, Qwen2HasBiasesOnQkvAndHeadsOfHiddenOverHeads) {
  const TargetConfig config = parse(qwen2());
  EXPECT_EQ(config.family, TargetFamily::kQwen2);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_TRUE(config.attention_bias_qkv);
  EXPECT_FALSE(config.attention_bias_o);
  EXPECT_FALSE(config.qk_norm);
  EXPECT_EQ(parse(qwen2(R"({"head_dim":24})")).head_dim, 24);
}

TEST(TargetConfig, AttentionBiasOfQwen3CoversAllFourProjections) {
  const TargetConfig config = parse(qwen3(R"({"attention_bias":true})"));
  EXPECT_TRUE(config.attention_bias_qkv);
  EXPECT_TRUE(config.attention_bias_o);
}

TEST(TargetConfig, FallsBackToTheModelType) {
  EXPECT_EQ(parse(qwen3(R"({"architectures":null})")).family, TargetFamily::kQwen3);
  EXPECT_EQ(parse(qwen2(R"({"architectures":[]})")).family, TargetFamily::kQwen2);
}

TEST(TargetConfig, NamesAnUnknownArchitectureAndTheSupportedOnes) {
  for (const char* name :
       {"LlamaForCausalLM", "Gemma3ForCausalLM", "Qwen3MoeForCausalLM", "DFlashDraftModel", "qwen3"}) {
    refuses(qwen3(std::string(R"({"architectures":[")") + name + R"(","Qwen3ForCausalLM"]})"),
            {"architectures = ", name, "Qwen2ForCausalLM, Qwen3ForCausalLM"});
  }
  refuses(R"({"architectures":null,"model_type":"llama"})", {"model_type = \"llama\"", "Qwen3ForCausalLM"});
  refuses(R"({"architectures":null,"model_type":null})", {"architectures", "missing"});
  refuses(R"({"architectures":"Qwen3ForCausalLM"})", {"architectures", "list"});
}

TEST(TargetConfig, TextConfigHoldsTheTextKeysAndWinsForTying) {
  Json config = parse_json(R"({"architectures":["Qwen3ForCausalLM"],"tie_word_embeddings":false})", "test");
  config["text_config"] = qwen3(R"({"architectures":null,"tie_word_embeddings":true})");
  EXPECT_EQ(parse(config).hidden_size, 64);
  EXPECT_EQ(parse(config).tie_word_embeddings, true);
  config["text_config"].erase("tie_word_embeddings");
  EXPECT_EQ(parse(config).tie_word_embeddings, false);
  config["text_config"]["hidden_size"] = 0;
  refuses(config, {"text_config.hidden_size = 0"});
}

TEST(TargetConfig, RefusesMissingSizes) {
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "vocab_size", "num_attention_heads", "intermediate_size"}) {
    Json config = qwen3();
    config.erase(key);
    refuses(config, {key, "missing"});
    config[key] = nullptr;
    refuses(config, {key, "missing"});
  }
}

TEST(TargetConfig, RefusesSizesThatAreNotPositiveWholeNumbers) {
  for (const char* key : {"hidden_size", "num_hidden_layers", "vocab_size", "num_attention_heads",
                          "num_key_value_heads", "head_dim", "intermediate_size", "max_position_embeddings"}) {
    Json config = qwen3();
    for (const Json& bad : {Json(0), Json(-4), Json(64.5), Json("64"), Json(true), Json(1e300), Json::array({64})}) {
      config[key] = bad;
      refuses(config, {key, brief(bad).c_str()});
    }
  }
}

TEST(TargetConfig, RefusesAbsurdSizes) {
  refuses(R"({"num_hidden_layers":1025})", {"num_hidden_layers = 1025", "1024"});
  refuses(R"({"vocab_size":16777217})", {"vocab_size = 16777217", "16777216"});
  refuses(R"({"hidden_size":1048576,"vocab_size":2097152})", {"hidden_size = 1048576", "2097152", "2^40"});
  refuses(R"({"hidden_size":16777216,"intermediate_size":131072})", {"hidden_size", "131072 x 16777216"});
  refuses(R"({"num_attention_heads":1048576,"num_key_value_heads":1})",
          {"num_attention_heads = 1048576", "head_dim = 32"});
}

TEST(TargetConfig, RefusesHeadsThatDoNotShareEvenly) {
  refuses(R"({"num_key_value_heads":3})", {"num_key_value_heads = 3", "num_attention_heads = 4"});
  refuses(R"({"num_key_value_heads":8})", {"num_key_value_heads = 8"});
}

TEST(TargetConfig, RefusesOddHeadDims) {
  refuses(R"({"head_dim":33})", {"head_dim = 33", "odd"});
  refuses(qwen2(R"({"hidden_size":60})"), {"head_dim", "15", "odd"});
}

TEST(TargetConfig, RefusesAnAbsentHeadDimThatCannotBeDerived) {
  refuses(qwen2(R"({"hidden_size":66})"), {"head_dim", "hidden_size = 66", "num_attention_heads = 4"});
}

TEST(TargetConfig, RefusesEpsAndThetaThatAreNotPositive) {
  refuses(R"({"rms_norm_eps":0})", {"rms_norm_eps = 0"});
  refuses(R"({"rms_norm_eps":-1e-6})", {"rms_norm_eps = -1e-06"});
  refuses(R"({"rope_theta":0})", {"rope_theta = 0"});
}

TEST(TargetConfig, RefusesAnotherActivation) { refuses(R"({"hidden_act":"gelu"})", {"hidden_act = \"gelu\"", "silu"}); }

TEST(TargetConfig, RefusesBadLayerTypes) {
  refuses(R"({"layer_types":["full_attention"]})", {"layer_types", "1 entries", "num_hidden_layers is 4"});
  refuses(R"({"layer_types":["full_attention","full_attention","chunked","full_attention"]})",
          {"layer_types", "2 is \"chunked\""});
  refuses(R"({"layer_types":["full_attention",null,"full_attention","full_attention"]})", {"layer_types"});
  refuses(R"({"layer_types":"full_attention"})", {"layer_types"});
}

TEST(TargetConfig, UpperLayersSlideWhenTheSlidingWindowIsUsed) {
  const TargetConfig config = parse(qwen2(R"({"use_sliding_window":true,"sliding_window":16,"max_window_layers":3})"));
  EXPECT_THAT(config.layer_types, ElementsAre(kFull, kFull, kFull, kSliding));
  EXPECT_THAT(config.sliding_windows, ElementsAre(0, 0, 0, 16));
}

TEST(TargetConfig, WithoutMaxWindowLayersTheFirst28StayFull) {
  const TargetConfig config = parse(qwen3(R"({"use_sliding_window":true,"sliding_window":16,"num_hidden_layers":30})"));
  EXPECT_EQ(config.sliding_windows[27], 0);
  EXPECT_EQ(config.sliding_windows[28], 16);
}

TEST(TargetConfig, AWindowThatIsNotUsedChangesNothing) {
  EXPECT_THAT(parse(qwen2(R"({"use_sliding_window":false,"sliding_window":16,"max_window_layers":0})")).sliding_windows,
              Each(0));
  EXPECT_THAT(parse(qwen2(R"({"sliding_window":16,"max_window_layers":0})")).sliding_windows, Each(0));
  EXPECT_THAT(parse(qwen2(R"({"use_sliding_window":true,"max_window_layers":0})")).sliding_windows, Each(0));
}

TEST(TargetConfig, LayerTypesDecideWhichLayersSlide) {
  const std::string types =
      R"("layer_types":["sliding_attention","full_attention","full_attention","full_attention"]})";
  const TargetConfig config =
      parse(qwen3(R"({"use_sliding_window":true,"sliding_window":16,"max_window_layers":0,)" + types));
  EXPECT_THAT(config.sliding_windows, ElementsAre(16, 0, 0, 0));
  EXPECT_THAT(parse(qwen3(R"({"sliding_window":8,)" + types)).sliding_windows, ElementsAre(8, 0, 0, 0));
  refuses(qwen3(R"({"use_sliding_window":false,"sliding_window":16,)" + types),
          {"layer_types", "use_sliding_window is false"});
  refuses(qwen3("{" + types), {"sliding_window", "layer 0"});
}

TEST(TargetConfig, RefusesASlidingLayerWithoutAPositiveWindow) {
  refuses(R"({"use_sliding_window":true,"sliding_window":0,"max_window_layers":0})", {"sliding_window = 0", "layer 0"});
  refuses(R"({"use_sliding_window":true,"sliding_window":-3,"max_window_layers":2})",
          {"sliding_window = -3", "layer 2"});
  refuses(R"({"use_sliding_window":true,"sliding_window":8,"max_window_layers":-1})", {"max_window_layers = -1"});
}

TEST(TargetConfig, RefusesQuantisedWeightsByName) {
  refuses(R"({"quantization_config":{"quant_method":"gptq","bits":4}})",
          {"quantization_config.quant_method = \"gptq\""});
  refuses(R"({"quantization":{"group_size":64,"bits":4}})", {"quantization = {", "MLX"});
  refuses(R"({"quantization_config":{"group_size":64,"bits":4}})", {"quantization_config = {", "MLX"});
  EXPECT_NO_THROW(parse(qwen3(R"({"quantization_config":null})")));
}

TEST(TargetConfig, RefusesKeysOfTheWrongType) {
  refuses(R"({"tie_word_embeddings":1})", {"tie_word_embeddings = 1"});
  refuses(R"({"attention_bias":"yes"})", {"attention_bias = \"yes\""});
  refuses(R"({"use_sliding_window":0})", {"use_sliding_window = 0"});
  refuses(R"({"text_config":[]})", {"text_config = []", "object"});
  refuses(R"({"rms_norm_eps":"1e-6"})", {"rms_norm_eps"});
  refuses(Json::array(), {"[]", "object"});
}

TEST(TargetConfig, ReadsAFolder) {
  const TempFolder folder;
  folder.write("config.json", qwen3().dump());
  EXPECT_EQ(read_target_config(folder.path()).source, folder / "config.json");
  folder.write("config.json", "{");
  expect_error([&] { read_target_config(folder.path()); }, {"config.json", "JSON"});
}

TEST(TargetConfig, ReadsPublishedShapes) {
  const TargetConfig small = parse(parse_json(
      R"({"architectures":["Qwen2ForCausalLM"],"attention_dropout":0.0,"bos_token_id":151643,"eos_token_id":151645,"hidden_act":"silu",
      "hidden_size":896,"initializer_range":0.02,"intermediate_size":4864,"max_position_embeddings":32768,"max_window_layers":21,
      "model_type":"qwen2","num_attention_heads":14,"num_hidden_layers":24,"num_key_value_heads":2,"rms_norm_eps":1e-06,
      "rope_theta":1000000.0,"sliding_window":32768,"tie_word_embeddings":true,"torch_dtype":"bfloat16","use_cache":true,
      "use_sliding_window":false,"vocab_size":151936})",
      "test"));
  EXPECT_EQ(small.head_dim, 64);
  EXPECT_EQ(small.rope.theta, 1e6);
  EXPECT_THAT(small.sliding_windows, Each(0));
}

TEST(TargetConfig, ReadsWhatOtherSoftwareWrote) {
  DRAFTHORSE_NEEDS_SHARED(folder, "golden/targets");
  EXPECT_EQ(read_target_config(folder + "/qwen2").family, TargetFamily::kQwen2);
  EXPECT_EQ(read_target_config(folder + "/qwen3").head_dim, 32);
  const TargetConfig yarn = read_target_config(folder + "/qwen2-yarn-untied");
  EXPECT_EQ(yarn.rope.kind, RopeKind::kYarn);
  EXPECT_EQ(yarn.rope.original_max_position, 64);
  EXPECT_EQ(yarn.tie_word_embeddings, false);
}

TEST(ModelFolder, FindsTheFilesThatAreThere) {
  const TempFolder folder;
  folder.write("config.json", "{}");
  folder.write("tokenizer.json", "{}");
  const ModelFolder files = open_model_folder(folder.path());
  EXPECT_EQ(files.config, folder / "config.json");
  EXPECT_EQ(files.tokenizer, folder / "tokenizer.json");
  EXPECT_FALSE(files.generation_config.has_value());
  EXPECT_FALSE(files.tokenizer_config.has_value());
}

TEST(ModelFolder, SaysWhatIsExpected) {
  const TempFolder folder;
  expect_error([&] { open_model_folder(folder.path()); }, {folder.path().c_str(), "no config.json", "Hugging Face"});
  const std::string file = folder.write("model.gguf", "GGUF");
  expect_error([&] { open_model_folder(file); }, {file.c_str(), "not a folder", "config.json and model.safetensors"});
  expect_error([&] { open_model_folder(folder / "none"); }, {"none", "does not exist", "config.json"});
}

}  // namespace
}  // namespace drafthorse
