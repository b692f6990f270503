#include "checkpoint/rope_config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/error_text.h"

namespace drafthorse {
namespace {

RopeConfig parse(const std::string& text, int head_dim = 64, const RopeDefaults& defaults = {.theta = 10000.0}) {
  const Json json = parse_json(text, "config.json");
  return parse_rope(ConfigKeys({JsonObject(json, "config.json")}), head_dim, defaults);
}

void refuses(const std::string& text, std::initializer_list<const char*> parts) {
  SCOPED_TRACE(text);
  expect_error([&] { parse(text); }, parts);
}

TEST(RopeConfig, SilenceMeansTheDefaults) {
  const RopeConfig rope = parse("{}");
  EXPECT_EQ(rope.theta, 10000.0);
  EXPECT_EQ(rope.kind, RopeKind::kDefault);
  EXPECT_EQ(rope.attention_factor, 1.0);
  EXPECT_EQ(rope.rotary_dims, 64);
  EXPECT_FALSE(rope.interleaved);
}

TEST(RopeConfig, BothSpellingsSayTheSame) {
  const RopeConfig old =
      parse(R"({"rope_theta":5e5,"partial_rotary_factor":0.5,"rope_scaling":{"type":"linear","factor":8}})");
  const RopeConfig modern =
      parse(R"({"rope_parameters":{"rope_theta":5e5,"partial_rotary_factor":0.5,"rope_type":"linear","factor":8}})");
  for (const RopeConfig& rope : {old, modern}) {
    EXPECT_EQ(rope.theta, 5e5);
    EXPECT_EQ(rope.kind, RopeKind::kLinear);
    EXPECT_EQ(rope.factor, 8.0);
    EXPECT_EQ(rope.rotary_dims, 32);
  }
}

TEST(RopeConfig, RopeParametersWinOverTheOldSpelling) {
  const RopeConfig rope =
      parse(R"({"rope_theta":1,"rope_scaling":{"type":"linear","factor":8},"rope_parameters":{"rope_theta":7}})");
  EXPECT_EQ(rope.theta, 7.0);
  EXPECT_EQ(rope.kind, RopeKind::kDefault);
  EXPECT_EQ(parse(R"({"rope_theta":9,"rope_parameters":{"rope_type":"default"}})").theta, 9.0);
}

TEST(RopeConfig, NullCountsAsAbsent) {
  const RopeConfig rope =
      parse(R"({"rope_theta":null,"rope_scaling":null,"rope_parameters":{"rope_type":null,"factor":null}})");
  EXPECT_EQ(rope.theta, 10000.0);
  EXPECT_EQ(rope.kind, RopeKind::kDefault);
}

TEST(RopeConfig, Llama3HasPublishedDefaults) {
  const RopeConfig rope = parse(R"({"rope_scaling":{"rope_type":"llama3","factor":32}})");
  EXPECT_EQ(rope.kind, RopeKind::kLlama3);
  EXPECT_EQ(rope.factor, 32.0);
  EXPECT_EQ(rope.low_freq_factor, 1.0);
  EXPECT_EQ(rope.high_freq_factor, 4.0);
  EXPECT_EQ(rope.original_max_position, 8192);
  EXPECT_EQ(rope.attention_factor, 1.0);
}

TEST(RopeConfig, YarnResolvesItsAttentionFactor) {
  const auto factor_of = [](const std::string& more) {
    return parse(R"({"rope_scaling":{"type":"yarn","factor":4,"original_max_position_embeddings":64)" + more + "}}")
        .attention_factor;
  };
  EXPECT_DOUBLE_EQ(factor_of(""), 0.1 * std::log(4.0) + 1.0);
  EXPECT_DOUBLE_EQ(factor_of(R"(,"attention_factor":1.5)"), 1.5);
  EXPECT_DOUBLE_EQ(factor_of(R"(,"mscale":2,"mscale_all_dim":1)"),
                   (0.2 * std::log(4.0) + 1) / (0.1 * std::log(4.0) + 1));
  EXPECT_DOUBLE_EQ(factor_of(R"(,"mscale":2)"), 0.1 * std::log(4.0) + 1.0);
  const std::string same = R"({"rope_scaling":{"type":"yarn","factor":1,"original_max_position_embeddings":64}})";
  EXPECT_EQ(parse(same).attention_factor, 1.0);
  EXPECT_EQ(parse(same).beta_fast, 32.0);
  EXPECT_EQ(parse(same).beta_slow, 1.0);
}

TEST(RopeConfig, RefusesUnsupportedKindsByName) {
  for (const char* kind : {"dynamic", "longrope", "proportional", "su", "YARN"}) {
    refuses(std::string(R"({"rope_scaling":{"type":")") + kind + R"(","factor":2}})",
            {"config.json", "rope_scaling.type", kind});
  }
  refuses(R"({"rope_parameters":{"rope_type":"ntk"}})", {"rope_parameters.rope_type = \"ntk\"", "yarn"});
}

TEST(RopeConfig, RefusesUnknownRopeKeys) {
  refuses(R"({"rope_scaling":{"type":"yarn","factor":2,"original_max_position_embeddings":64,"attn_factor":1}})",
          {"rope_scaling.attn_factor = 1", "unknown"});
  EXPECT_NO_THROW(parse(R"({"rope_scaling":{"type":"default","mrope_section":[8,12,12],"mrope_interleaved":true}})"));
}

TEST(RopeConfig, RefusesImpossibleNumbers) {
  refuses(R"({"rope_theta":0})", {"rope_theta = 0"});
  refuses(R"({"rope_theta":-1.5})", {"rope_theta = -1.5"});
  refuses(R"({"rope_theta":"1e4"})", {"rope_theta", "number"});
  refuses(R"({"partial_rotary_factor":0})", {"partial_rotary_factor = 0"});
  refuses(R"({"partial_rotary_factor":1.5})", {"partial_rotary_factor = 1.5", "at most 1"});
  refuses(R"({"partial_rotary_factor":0.05})", {"partial_rotary_factor = 0.05", "3 of 64"});
  refuses(R"({"rope_scaling":{"type":"linear"}})", {"rope_scaling.factor", "missing"});
  refuses(R"({"rope_scaling":{"type":"linear","factor":0}})", {"rope_scaling.factor = 0"});
  refuses(R"({"rope_scaling":{"type":"llama3","factor":0.5}})", {"rope_scaling.factor = 0.5", "1 or more"});
  refuses(R"({"rope_scaling":{"type":"llama3","factor":8,"low_freq_factor":4}})",
          {"high_freq_factor", "low_freq_factor = 4"});
  refuses(R"({"rope_scaling":{"type":"yarn","factor":4}})", {"original_max_position_embeddings", "missing"});
  refuses(R"({"rope_scaling":{"type":"yarn","factor":4,"original_max_position_embeddings":0}})",
          {"original_max_position_embeddings = 0"});
  refuses(R"({"rope_scaling":{"type":"yarn","factor":4,"original_max_position_embeddings":64,"beta_fast":1}})",
          {"beta_fast = 1", "beta_slow"});
  refuses(R"({"rope_scaling":{"type":"yarn","factor":4,"original_max_position_embeddings":64,"truncate":false}})",
          {"truncate = false"});
  refuses(R"({"rope_scaling":{"type":"yarn","factor":4,"original_max_position_embeddings":64,"attention_factor":0}})",
          {"attention_factor = 0"});
  refuses(
      R"({"rope_scaling":{"type":"yarn","factor":4,"original_max_position_embeddings":64,"mscale":-20,"mscale_all_dim":1}})",
      {"mscale = -20"});
  refuses(R"({"rope_theta":1,"rope_scaling":{"type":"yarn","factor":4,"original_max_position_embeddings":64}})",
          {"rope_theta", "above 1"});
  refuses(R"({"rope_scaling":"yarn"})", {"rope_scaling = \"yarn\"", "object"});
}

TEST(RopeConfig, AMissingBaseIsAnErrorWhenThereIsNoDefault) {
  expect_error([] { parse("{}", 64, {}); }, {"rope_theta", "missing"});
}

}  // namespace
}  // namespace drafthorse
