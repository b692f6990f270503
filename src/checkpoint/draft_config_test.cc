#include "checkpoint/draft_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace drafthorse {
namespace {

using testing::Each;
using testing::ElementsAre;

/// A valid DFlash config; `patch` is laid over it, and null removes a key.
Json dflash(const std::string& patch = "{}") {
  Json config =
      parse_json(R"({"architectures":["DFlashDraftModel"],"model_type":"qwen3","hidden_size":64,"num_hidden_layers":2,
      "num_attention_heads":4,"num_key_value_heads":2,"head_dim":32,"intermediate_size":160,"rms_norm_eps":1e-6,
      "rope_theta":10000,"vocab_size":320,"num_target_layers":6,"dflash_config":{"block_size":8,"mask_token_id":319,
      "target_layer_ids":[1,3,4]}})",
                 "test");
  config.merge_patch(parse_json(patch, "test"));
  return config;
}
Json dflash2(const std::string& patch = "{}") {
  Json config =
      dflash(R"({"architectures":["DFlash2DraftModel"],"dflash_config":{"conv_kernel_size":2,"conv_group_size":16,
      "selector_rank":8,"selector_top_k":16}})");
  config.merge_patch(parse_json(patch, "test"));
  return config;
}

DraftConfig parse(const Json& config) { return parse_draft_config(config, "d/config.json"); }

void refuses(const Json& config, std::initializer_list<const char*> parts) {
  SCOPED_TRACE(config.dump());
  const std::string text = error_text([&] { parse(config); });
  EXPECT_TRUE(text.starts_with("d/config.json: ")) << text;
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}
void refuses(const char* patch, std::initializer_list<const char*> parts) { refuses(dflash(patch), parts); }

TEST(DraftConfig, ReadsWhatTheFileSays) {
  const DraftConfig draft = parse(dflash());
  EXPECT_EQ(draft.family, DraftFamily::kDflash);
  EXPECT_EQ(draft.architecture, "DFlashDraftModel");
  EXPECT_EQ(draft.hidden_size, 64);
  EXPECT_EQ(draft.num_hidden_layers, 2);
  EXPECT_EQ(draft.num_attention_heads, 4);
  EXPECT_EQ(draft.num_key_value_heads, 2);
  EXPECT_EQ(draft.head_dim, 32);
  EXPECT_EQ(draft.intermediate_size, 160);
  EXPECT_EQ(draft.rms_norm_eps, 1e-6);
  EXPECT_EQ(draft.rope.theta, 10000.0);
  EXPECT_EQ(draft.rope.rotary_dims, 32);
  EXPECT_EQ(draft.block_size, 8);
  EXPECT_EQ(draft.mask_token_id, 319);
  EXPECT_THAT(draft.target_layer_ids, ElementsAre(1, 3, 4));
  EXPECT_EQ(draft.taps(), 3);
  EXPECT_EQ(draft.num_target_layers, 6);
  EXPECT_EQ(draft.vocab_size, 320);
}

TEST(DraftConfig, SilenceMeansTheDefaults) {
  const DraftConfig draft = parse(dflash(R"({"vocab_size":null,"num_target_layers":null})"));
  EXPECT_EQ(draft.vocab_size, 0);
  EXPECT_EQ(draft.num_target_layers, 0);
  EXPECT_FALSE(draft.rope.interleaved);
  EXPECT_FALSE(draft.window_inclusive);
  EXPECT_FALSE(draft.causal.has_value());
  EXPECT_EQ(draft.output_multiplier, 1.0);
  EXPECT_EQ(draft.final_logit_softcapping, 0.0);
  EXPECT_EQ(draft.input_embedding_scale, 1.0);
  EXPECT_EQ(draft.dflash2.conv_kernel_size, 0);
}

TEST(DraftConfig, AbsentLayerTypesMeanAllFull) {
  const DraftConfig draft = parse(dflash(R"({"sliding_window":4,"use_sliding_window":true})"));
  EXPECT_THAT(draft.layer_types, ElementsAre(LayerType::kFullAttention, LayerType::kFullAttention));
  EXPECT_THAT(draft.sliding_windows, Each(0));
}

TEST(DraftConfig, LayerTypesAndWindowDecideWhateverUseSlidingWindowSays) {
  for (const char* use : {"true", "false", "null"}) {
    const DraftConfig draft =
        parse(dflash(std::string(R"({"use_sliding_window":)") + use +
                     R"(,"sliding_window":8,"layer_types":["sliding_attention","full_attention"]})"));
    EXPECT_THAT(draft.sliding_windows, ElementsAre(8, 0)) << use;
  }
}

TEST(DraftConfig, DflashConfigWinsOverTheTopLevel) {
  const DraftConfig draft = parse(dflash(R"({"block_size":16,"mask_token_id":5,"output_multiplier":3,
      "dflash_config":{"hidden_size":128,"rope_theta":77,"output_multiplier":0.5,"final_logit_softcapping":20,
      "input_embedding_scale":2}})"));
  EXPECT_EQ(draft.block_size, 8);
  EXPECT_EQ(draft.mask_token_id, 319);
  EXPECT_EQ(draft.hidden_size, 128);
  EXPECT_EQ(draft.rope.theta, 77.0);
  EXPECT_EQ(draft.output_multiplier, 0.5);
  EXPECT_EQ(draft.final_logit_softcapping, 20.0);
  EXPECT_EQ(draft.input_embedding_scale, 2.0);
}

TEST(DraftConfig, EveryKeyMayStandAtTheTopLevel) {
  const DraftConfig draft =
      parse(dflash(R"({"dflash_config":null,"block_size":4,"mask_token_id":7,"target_layer_ids":[0,2]})"));
  EXPECT_EQ(draft.block_size, 4);
  EXPECT_EQ(draft.mask_token_id, 7);
  EXPECT_THAT(draft.target_layer_ids, ElementsAre(0, 2));
}

TEST(DraftConfig, TheLargerNumberOfTargetLayersCounts) {
  EXPECT_EQ(parse(dflash(R"({"dflash_config":{"num_target_layers":5}})")).num_target_layers, 6);
  EXPECT_EQ(parse(dflash(R"({"dflash_config":{"num_target_layers":9}})")).num_target_layers, 9);
}

TEST(DraftConfig, CausalityIsDeclaredOrFollowsTheLayerType) {
  const std::string types = R"("sliding_window":8,"layer_types":["sliding_attention","full_attention"])";
  const DraftConfig silent = parse(dflash("{" + types + "}"));
  EXPECT_TRUE(silent.causal_in(0));
  EXPECT_FALSE(silent.causal_in(1));
  const DraftConfig no = parse(dflash("{" + types + R"(,"is_causal":false})"));
  EXPECT_FALSE(no.causal_in(0));
  const DraftConfig yes = parse(dflash("{" + types + R"(,"is_causal":false,"dflash_config":{"causal":true}})"));
  EXPECT_TRUE(yes.causal_in(1));
}

TEST(DraftConfig, KnowsTheFourFamilies) {
  EXPECT_EQ(parse(dflash(R"({"architectures":["DFlashLagunaForCausalLM"]})")).family, DraftFamily::kLaguna);
  EXPECT_EQ(parse(dflash(R"({"architectures":null,"model_type":"DFlashDraftModel"})")).family, DraftFamily::kDflash);
  const DraftConfig two = parse(dflash2());
  EXPECT_EQ(two.family, DraftFamily::kDflash2);
  EXPECT_EQ(two.dflash2.conv_kernel_size, 2);
  EXPECT_EQ(two.dflash2.conv_group_size, 16);
  EXPECT_EQ(two.dflash2.selector_rank, 8);
  EXPECT_EQ(two.dflash2.selector_top_k, 16);
}

TEST(DraftConfig, MuseGlimmerHasAnInclusiveNonCausalWindow) {
  const DraftConfig muse =
      parse(dflash(R"({"architectures":["MuseGlimmerAssistantModel"],"dflash_config":null,"block_size":4,
      "mask_token_id":7,"target_layer_ids":[0,2],"sliding_window":8,"layer_types":["sliding_attention","full_attention"]})"));
  EXPECT_EQ(muse.family, DraftFamily::kMuseGlimmer);
  EXPECT_TRUE(muse.window_inclusive);
  EXPECT_FALSE(muse.causal_in(0));
  EXPECT_FALSE(muse.rope.interleaved);
  EXPECT_TRUE(
      parse(dflash(R"({"architectures":["MuseGlimmerAssistantModel"],"rope_interleaved":true})")).rope.interleaved);
}

TEST(DraftConfig, RefusesAnUnknownArchitecture) {
  refuses(R"({"architectures":["Qwen3DSparkModel"]})", {"Qwen3DSparkModel", "DFlashDraftModel", "DFlash2DraftModel"});
  refuses(R"({"architectures":null})", {"model_type = \"qwen3\"", "DFlashDraftModel"});
  refuses(R"({"architectures":null,"model_type":null})", {"architectures", "missing"});
}

TEST(DraftConfig, Error1NotParsable) {
  const TempFolder folder;
  folder.write("config.json", R"({"architectures":["DFlashDraftModel"],})");
  expect_error([&] { read_draft_config(folder.path()); }, {"config.json", "JSON"});
}

TEST(DraftConfig, Error2BlockSizeMissingOrTooSmall) {
  refuses(R"({"dflash_config":{"block_size":null}})", {"block_size", "missing"});
  refuses(R"({"dflash_config":{"block_size":1}})", {"dflash_config.block_size = 1", "2 or more"});
  refuses(R"({"dflash_config":{"block_size":0}})", {"dflash_config.block_size = 0"});
  refuses(R"({"dflash_config":{"block_size":5000}})", {"block_size = 5000", "4096"});
}

TEST(DraftConfig, Error3MaskTokenMissing) {
  refuses(R"({"dflash_config":{"mask_token_id":null}})", {"mask_token_id", "missing"});
  refuses(R"({"dflash_config":{"mask_token_id":"<mask>"}})", {"mask_token_id = \"<mask>\""});
}

TEST(DraftConfig, Error4TapsMissingOrEmpty) {
  refuses(R"({"dflash_config":{"target_layer_ids":null}})", {"target_layer_ids", "missing"});
  refuses(R"({"dflash_config":{"target_layer_ids":[]}})", {"dflash_config.target_layer_ids = []", "empty"});
}

TEST(DraftConfig, Error5TapsNegativeOrNotAscending) {
  refuses(R"({"dflash_config":{"target_layer_ids":[-1,3]}})", {"target_layer_ids = [-1,3]", "layer -1", "negative"});
  refuses(R"({"dflash_config":{"target_layer_ids":[1,1]}})", {"[1,1]", "ascending"});
  refuses(R"({"dflash_config":{"target_layer_ids":[4,3]}})", {"[4,3]", "3 follows 4"});
  refuses(R"({"dflash_config":{"target_layer_ids":[1.5]}})", {"[1.5]", "whole"});
}

TEST(DraftConfig, Error6LastTapBeyondTheDeclaredTarget) {
  refuses(R"({"dflash_config":{"target_layer_ids":[1,6]}})", {"layer 6", "num_target_layers = 6"});
  refuses(R"({"num_target_layers":null,"dflash_config":{"target_layer_ids":[1,4294967296]}})", {"4294967296", "1024"});
}

TEST(DraftConfig, Error7LayerTypesOfAnotherLength) {
  refuses(R"({"layer_types":["full_attention"]})", {"layer_types", "1 entries", "num_hidden_layers is 2"});
}

TEST(DraftConfig, Error8SlidingLayerWithoutAWindow) {
  refuses(R"({"layer_types":["full_attention","sliding_attention"]})", {"sliding_window", "layer 1"});
  refuses(R"({"sliding_window":-2,"layer_types":["full_attention","sliding_attention"]})", {"sliding_window = -2"});
}

TEST(DraftConfig, Error9UnknownLayerType) {
  refuses(R"({"layer_types":["full_attention","linear_attention"]})", {"layer_types", "1 is \"linear_attention\""});
}

TEST(DraftConfig, Error10UnreadableConfig) {
  const TempFolder folder;
  expect_error([&] { read_draft_config(folder.path()); }, {folder.path().c_str(), "config.json"});
  expect_error([&] { read_draft_config(folder / "none"); }, {"none", "does not exist"});
}

TEST(DraftConfig, Error24ConvolutionSizes) {
  for (const char* key : {"conv_kernel_size", "conv_group_size"}) {
    refuses(dflash2(std::string(R"({"dflash_config":{")") + key + "\":0}}"), {key, "= 0"});
    refuses(dflash2(std::string(R"({"dflash_config":{")") + key + "\":null}}"), {key, "missing"});
  }
  refuses(dflash2(R"({"dflash_config":{"conv_group_size":24}})"), {"conv_group_size = 24", "hidden_size = 64"});
}

TEST(DraftConfig, Error25SelectorSizes) {
  for (const char* key : {"selector_rank", "selector_top_k"}) {
    refuses(dflash2(std::string(R"({"dflash_config":{")") + key + "\":-1}}"), {key, "= -1"});
    refuses(dflash2(std::string(R"({"dflash_config":{")") + key + "\":null}}"), {key, "missing"});
  }
  refuses(dflash2(R"({"dflash_config":{"selector_top_k":321}})"), {"selector_top_k = 321", "vocab_size = 320"});
}

TEST(DraftConfig, RefusesMissingOrImpossibleSizes) {
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
                          "intermediate_size"}) {
    Json config = dflash();
    config.erase(key);
    refuses(config, {key, "missing"});
    config[key] = 0;
    refuses(config, {key, "= 0"});
  }
  refuses(R"({"num_key_value_heads":3})", {"num_key_value_heads = 3", "num_attention_heads = 4"});
  refuses(R"({"head_dim":31})", {"head_dim = 31", "odd"});
  refuses(R"({"vocab_size":-1})", {"vocab_size = -1"});
  refuses(R"({"num_target_layers":-1})", {"num_target_layers = -1"});
}

TEST(DraftConfig, RefusesMissingOrImpossibleEpsAndTheta) {
  refuses(R"({"rms_norm_eps":null})", {"rms_norm_eps", "missing"});
  refuses(R"({"rms_norm_eps":0})", {"rms_norm_eps = 0"});
  refuses(R"({"rope_theta":null})", {"rope_theta", "missing"});
  refuses(R"({"rope_theta":0})", {"rope_theta = 0"});
  refuses(R"({"rope_scaling":{"type":"dynamic","factor":2}})", {"rope_scaling.type = \"dynamic\""});
  refuses(R"({"partial_rotary_factor":0.5})", {"partial_rotary_factor", "16 of 32"});
}

TEST(DraftConfig, HonoursRopeScaling) {
  const DraftConfig draft = parse(dflash(
      R"({"rope_parameters":{"rope_type":"yarn","rope_theta":1e6,"factor":4,"original_max_position_embeddings":128}})"));
  EXPECT_EQ(draft.rope.kind, RopeKind::kYarn);
  EXPECT_EQ(draft.rope.theta, 1e6);
}

TEST(DraftConfig, RefusesImpossibleOutputSettings) {
  refuses(R"({"output_multiplier":0})", {"output_multiplier = 0"});
  refuses(R"({"final_logit_softcapping":-1})", {"final_logit_softcapping = -1"});
  refuses(R"({"input_embedding_scale":-1})", {"input_embedding_scale = -1"});
  refuses(R"({"rope_interleaved":"no"})", {"rope_interleaved"});
  refuses(R"({"hidden_act":"gelu"})", {"hidden_act = \"gelu\""});
  refuses(R"({"quantization":{"bits":4}})", {"quantization", "MLX"});
}

TEST(DraftConfig, RefusesRelativesByTheKeyThatGivesThemAway) {
  struct Case {
    const char* entry;
    const char* message;
  };
  for (const Case& c :
       {Case{R"("projector_type":"dspark")", "projector_type = \"dspark\""},
        Case{R"("sample_from_anchor":true)", "sample_from_anchor = true"},
        Case{R"("shift_label":true)", "shift_label = true"},
        Case{R"("use_confidence_head":true)", "use_confidence_head = true"},
        Case{R"("markov_rank":64)", "markov_rank = 64"}, Case{R"("linear_context":true)", "linear_context = true"},
        Case{R"("draft_vocab_size":100)", "draft_vocab_size = 100"}}) {
    refuses(dflash(std::string("{") + c.entry + "}"), {c.message});
    refuses(dflash(std::string(R"({"dflash_config":{)") + c.entry + "}}"), {"dflash_config.", c.message});
  }
  refuses(R"({"vocab_size":null,"draft_vocab_size":100})", {"draft_vocab_size = 100", "vocab_size = absent"});
}

TEST(DraftConfig, AcceptsTheSameKeysWhenTheyChangeNothing) {
  EXPECT_NO_THROW(parse(dflash(R"({"projector_type":"dflash","sample_from_anchor":false,"shift_label":false,
      "use_confidence_head":false,"linear_context":false,"draft_vocab_size":320,"dflasher":"1.0","transformers_version":"5",
      "training":{"loss":"ce"}})")));
}

TargetFacts facts() { return {6, 64, 320}; }

void pairs_not(const DraftConfig& draft, const TargetFacts& target, std::initializer_list<const char*> parts) {
  const std::string text = error_text([&] { check_pairing(draft, target, "t/config.json"); });
  EXPECT_TRUE(text.starts_with("d/config.json: ")) << text;
  EXPECT_NE(text.find("t/config.json"), std::string::npos) << text;
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

TEST(CheckPairing, AcceptsTheTargetTheDraftWasMadeFor) {
  EXPECT_NO_THROW(check_pairing(parse(dflash()), facts(), "t/config.json"));
  EXPECT_NO_THROW(check_pairing(parse(dflash2()), facts(), "t/config.json"));
}

TEST(CheckPairing, Error12OtherNumberOfLayers) {
  pairs_not(parse(dflash()), {7, 64, 320}, {"num_target_layers = 6", "7 layers"});
}

TEST(CheckPairing, Error13TapBeyondTheTarget) {
  const DraftConfig draft = parse(dflash(R"({"num_target_layers":null})"));
  pairs_not(draft, {4, 64, 320}, {"target_layer_ids", "= 4", "0 to 3"});
  EXPECT_NO_THROW(check_pairing(draft, {5, 64, 320}, "t"));
}

TEST(CheckPairing, Error14OtherWidth) { pairs_not(parse(dflash()), {6, 128, 320}, {"hidden_size = 64", "128 wide"}); }

TEST(CheckPairing, Error15OtherVocabulary) {
  pairs_not(parse(dflash()), {6, 64, 321}, {"vocab_size = 320", "321 wide"});
}

TEST(CheckPairing, Error16MaskTokenOutsideTheVocabulary) {
  pairs_not(parse(dflash(R"({"vocab_size":null})")), {6, 64, 319}, {"mask_token_id = 319", "0 to 318"});
  pairs_not(parse(dflash(R"({"dflash_config":{"mask_token_id":-1}})")), facts(), {"mask_token_id = -1", "0 to 319"});
}

TEST(CheckPairing, MoreCandidatesThanTokensAreRefused) {
  pairs_not(parse(dflash2(R"({"vocab_size":null,"dflash_config":{"mask_token_id":0}})")), {6, 64, 15},
            {"selector_top_k = 16", "15 wide"});
}

TEST(CheckPairing, WarnsAboutATapOnTheLastLayer) {
  const DraftConfig last = parse(dflash(R"({"dflash_config":{"target_layer_ids":[1,5]}})"));
  ASSERT_EQ(pairing_warnings(last, facts()).size(), 1u);
  EXPECT_NE(pairing_warnings(last, facts())[0].find("last layer"), std::string::npos);
  EXPECT_TRUE(pairing_warnings(parse(dflash()), facts()).empty());
}

TEST(DraftConfig, ReadsWhatOtherSoftwareWrote) {
  DRAFTHORSE_NEEDS_SHARED(folder, "golden/drafts");
  for (const char* name : {"/dflash", "/dflash-sliding", "/dflash2", "/dflash2-wide"}) {
    const DraftConfig draft = read_draft_config(folder + name);
    EXPECT_NO_THROW(check_pairing(draft, facts(), "target")) << name;
  }
  EXPECT_THAT(read_draft_config(folder + "/dflash-sliding").sliding_windows, ElementsAre(8, 0, 8));
  EXPECT_EQ(read_draft_config(folder + "/dflash2").final_logit_softcapping, 6.0);
}

TEST(DraftConfig, ReadsTheTrainedDrafts) {
  DRAFTHORSE_NEEDS_SHARED(folder, "models");
  EXPECT_NO_THROW(check_pairing(read_draft_config(folder + "/demo/dflash"), {6, 256, 4096}, "target"));
  EXPECT_NO_THROW(check_pairing(read_draft_config(folder + "/coder-dflash"), {24, 896, 151936}, "target"));
}

}  // namespace
}  // namespace drafthorse
