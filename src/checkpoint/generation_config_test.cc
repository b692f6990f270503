#include "checkpoint/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace drafthorse {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

GenerationConfig parse(const std::string& config, const std::string& generation = "") {
  const Json top = parse_json(config, "config.json");
  if (generation.empty()) return parse_generation_config(top, "config.json", nullptr, "");
  const Json more = parse_json(generation, "generation_config.json");
  return parse_generation_config(top, "config.json", &more, "generation_config.json");
}

TEST(GenerationConfig, StopIdsAreTheUnionOfAllDeclaredOnes) {
  EXPECT_THAT(parse(R"({"eos_token_id":5})", R"({"eos_token_id":[6,5]})").stop_ids, ElementsAre(5, 6));
  EXPECT_THAT(parse(R"({"eos_token_id":[9,1],"text_config":{"eos_token_id":4}})", R"({"eos_token_id":2})").stop_ids,
              ElementsAre(1, 2, 4, 9));
  EXPECT_THAT(parse(R"({"eos_token_id":null})", R"({"eos_token_id":3})").stop_ids, ElementsAre(3));
  EXPECT_THAT(parse(R"({"eos_token_id":0})").stop_ids, ElementsAre(0));
  EXPECT_THAT(parse("{}").stop_ids, IsEmpty());
}

TEST(GenerationConfig, RefusesStopIdsThatAreNoIds) {
  expect_error([] { parse(R"({"eos_token_id":-1})"); }, {"config.json", "eos_token_id = -1"});
  expect_error([] { parse(R"({"eos_token_id":"</s>"})"); }, {"config.json", "eos_token_id = \"</s>\""});
  expect_error([] { parse(R"({"text_config":{"eos_token_id":1.5}})"); }, {"text_config.eos_token_id = 1.5"});
  expect_error([] { parse("{}", R"({"eos_token_id":[1,[2]]})"); },
               {"generation_config.json", "eos_token_id = [1,[2]]"});
  expect_error([] { parse("{}", R"({"eos_token_id":[4294967296]})"); }, {"eos_token_id = [4294967296]"});
  expect_error([] { parse("{}", R"({"bos_token_id":-2})"); }, {"bos_token_id = -2"});
}

TEST(GenerationConfig, TheBosIdOfTheGenerationFileWins) {
  EXPECT_EQ(parse(R"({"bos_token_id":1})", R"({"bos_token_id":2})").bos_id, 2);
  EXPECT_EQ(parse(R"({"bos_token_id":1,"text_config":{"bos_token_id":3}})", "{}").bos_id, 3);
  EXPECT_EQ(parse(R"({"bos_token_id":1})").bos_id, 1);
  EXPECT_FALSE(parse(R"({"bos_token_id":null})").bos_id.has_value());
}

TEST(GenerationConfig, SamplingDefaultsHoldOnlyWhenTheFileSamples) {
  const std::string keys = R"("temperature":0.7,"top_k":20,"top_p":0.8,"min_p":0.1,"repetition_penalty":1.05})";
  const GenerationConfig on = parse("{}", R"({"do_sample":true,)" + keys);
  EXPECT_TRUE(on.do_sample);
  EXPECT_EQ(on.sampling.temperature, 0.7);
  EXPECT_EQ(on.sampling.top_k, 20);
  EXPECT_EQ(on.sampling.top_p, 0.8);
  EXPECT_EQ(on.sampling.min_p, 0.1);
  EXPECT_EQ(on.sampling.repetition_penalty, 1.05);
  EXPECT_THAT(on.unsupported, IsEmpty());
  for (const char* start : {R"({"do_sample":false,)", "{"}) {
    const GenerationConfig off = parse("{}", start + keys);
    EXPECT_FALSE(off.do_sample);
    EXPECT_FALSE(off.sampling.temperature.has_value());
    EXPECT_FALSE(off.sampling.top_k.has_value());
    EXPECT_FALSE(off.sampling.repetition_penalty.has_value());
    EXPECT_THAT(off.unsupported, ElementsAre("repetition_penalty"));
  }
}

TEST(GenerationConfig, RefusesDefaultsOutOfRange) {
  for (const char* entry : {"\"temperature\":-0.5", "\"top_k\":-1", "\"top_p\":0", "\"top_p\":1.5", "\"min_p\":2",
                            "\"min_p\":-1", "\"repetition_penalty\":0", "\"temperature\":\"hot\"", "\"top_k\":1.5"}) {
    SCOPED_TRACE(entry);
    const std::string key = std::string(entry).substr(1, std::string(entry).find(':') - 2);
    expect_error([&] { parse("{}", std::string(R"({"do_sample":true,)") + entry + "}"); },
                 {"generation_config.json", (key + " = ").c_str()});
  }
  expect_error([] { parse("{}", R"({"do_sample":"yes"})"); }, {"do_sample = \"yes\""});
  expect_error([] { parse("{}", "[]"); }, {"generation_config.json", "[]"});
}

TEST(GenerationConfig, ListsKeysThatWouldChangeTheOutput) {
  EXPECT_THAT(
      parse("{}", R"({"num_beams":4,"no_repeat_ngram_size":3,"suppress_tokens":[7],"brand_new":1,"typical_p":0.9,
      "guidance_scale":2,"max_length":20,"pad_token_id":0,"transformers_version":"5"})")
          .unsupported,
      ElementsAre("num_beams", "no_repeat_ngram_size", "suppress_tokens", "brand_new", "typical_p", "guidance_scale"));
}

TEST(GenerationConfig, PassesOverKeysThatAreSwitchedOff) {
  EXPECT_THAT(
      parse("{}", R"({"num_beams":1,"no_repeat_ngram_size":0,"suppress_tokens":[],"typical_p":1.0,"brand_new":null,
      "early_stopping":false,"min_length":0,"repetition_penalty":1.0,"bad_words_ids":null})")
          .unsupported,
      IsEmpty());
}

TEST(GenerationConfig, ReadsAFolderWithAndWithoutTheSecondFile) {
  const TempFolder folder;
  folder.write("config.json", R"({"eos_token_id":5})");
  EXPECT_THAT(read_generation_config(folder.path()).stop_ids, ElementsAre(5));
  folder.write("generation_config.json", R"({"eos_token_id":[5,6]})");
  EXPECT_THAT(read_generation_config(folder.path()).stop_ids, ElementsAre(5, 6));
  folder.write("generation_config.json", "nonsense");
  expect_error([&] { read_generation_config(folder.path()); }, {"generation_config.json", "JSON"});
}

TEST(GenerationConfig, ReadsTheDemonstrationTarget) {
  DRAFTHORSE_NEEDS_SHARED(folder, "models/demo/target");
  EXPECT_THAT(read_generation_config(folder).stop_ids, ElementsAre(0, 2));
}

}  // namespace
}  // namespace drafthorse
