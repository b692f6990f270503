// Files from strangers: each bad one is refused with one line that names the place.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/error.h"
#include "support/tiny_tokenizer.h"

namespace drafthorse {
namespace {

/// The message of loading `text`, or "" when it loads.
std::string message_of(const std::string& text) {
  try {
    Tokenizer::from_json(text, "dir/tokenizer.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_refused(const std::string& text, const std::string& named) {
  const std::string message = message_of(text);
  EXPECT_EQ(message.rfind("dir/tokenizer.json: ", 0), 0U) << message << " for " << text.substr(0, 200);
  EXPECT_NE(message.find(named), std::string::npos) << message << " should name " << named;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(message.size(), 500U) << message;
}

struct BadCase {
  std::string named;
  std::function<void(Json&)> spoil;
};

class BadTokenizerFile : public testing::TestWithParam<BadCase> {};

TEST_P(BadTokenizerFile, IsRefusedNamingThePlace) {
  Json document = byte_level_json({{"a", "b"}});
  document["added_tokens"] = Json::array({added_token(300, "<x>")});
  ASSERT_EQ(message_of(document.dump()), "");
  GetParam().spoil(document);
  expect_refused(document.dump(), GetParam().named);
}

INSTANTIATE_TEST_SUITE_P(
    OneKey, BadTokenizerFile,
    testing::Values(
        BadCase{"version = \"2.0\"", [](Json& d) { d["version"] = "2.0"; }},
        BadCase{"surprise = 1", [](Json& d) { d["surprise"] = 1; }},
        BadCase{"model.vocab: missing", [](Json& d) { d["model"] = 3; }},
        BadCase{"model.type = \"Unigram\"", [](Json& d) { d["model"]["type"] = "Unigram"; }},
        BadCase{"model.dropout = 0.1", [](Json& d) { d["model"]["dropout"] = 0.1; }},
        BadCase{"model.continuing_subword_prefix = \"##\"", [](Json& d) { d["model"]["continuing_subword_prefix"] = "##"; }},
        BadCase{"model.end_of_word_suffix = \"</w>\"", [](Json& d) { d["model"]["end_of_word_suffix"] = "</w>"; }},
        BadCase{"model.unk_token = \"<unk>\"", [](Json& d) { d["model"]["unk_token"] = "<unk>"; }},
        BadCase{"model.ignore_merges = \"yes\"", [](Json& d) { d["model"]["ignore_merges"] = "yes"; }},
        BadCase{"model.byte_fallback = true", [](Json& d) { d["model"]["byte_fallback"] = true; }},
        BadCase{"model.novelty = 1", [](Json& d) { d["model"]["novelty"] = 1; }},
        BadCase{"model.vocab", [](Json& d) { d["model"].erase("vocab"); }},
        BadCase{"model.vocab", [](Json& d) { d["model"]["vocab"] = Json::array(); }},
        BadCase{"model.vocab: has no token", [](Json& d) { d["model"]["vocab"] = Json::object(); }},
        BadCase{"model.vocab[\"q\"] = -1", [](Json& d) { d["model"]["vocab"]["q"] = -1; }},
        BadCase{"model.vocab[\"q\"] = 16777216", [](Json& d) { d["model"]["vocab"]["q"] = 16777216; }},
        BadCase{"model.vocab[\"q\"] = 1.5", [](Json& d) { d["model"]["vocab"]["q"] = 1.5; }},
        BadCase{"model.vocab[\"q\"] = null", [](Json& d) { d["model"]["vocab"]["q"] = nullptr; }},
        BadCase{"model.vocab[\"q\"] = a list", [](Json& d) { d["model"]["vocab"]["q"] = Json::array(); }},
        BadCase{"model.vocab[\"qq\"] = 97: \"a\" has this id too", [](Json& d) { d["model"]["vocab"]["qq"] = 97; }},
        BadCase{"no token \"q\" for byte 113", [](Json& d) { d["model"]["vocab"].erase("q"); }},
        BadCase{"model.merges", [](Json& d) { d["model"].erase("merges"); }},
        BadCase{"model.merges[1] = \"a b c\"", [](Json& d) { d["model"]["merges"].push_back("a b c"); }},
        BadCase{"model.merges[1] = \"ab\"", [](Json& d) { d["model"]["merges"].push_back("ab"); }},
        BadCase{"model.merges[1]", [](Json& d) { d["model"]["merges"].push_back("a "); }},
        BadCase{"model.merges[1] = a list of 3", [](Json& d) { d["model"]["merges"].push_back({"a", "b", "c"}); }},
        BadCase{"model.merges[1] = 7", [](Json& d) { d["model"]["merges"].push_back(7); }},
        BadCase{"model.merges[1] = a list", [](Json& d) { d["model"]["merges"].push_back({"a", Json::array()}); }},
        BadCase{"model.merges[1] = an object", [](Json& d) { d["model"]["merges"].push_back(Json::object()); }},
        BadCase{"model.merges[1] = [\"b\", \"a\"]: \"ba\" is not in model.vocab", [](Json& d) { d["model"]["merges"].push_back({"b", "a"}); }},
        BadCase{"normalizer.type = \"Lowercase\"", [](Json& d) { d["normalizer"] = {{"type", "Lowercase"}}; }},
        BadCase{"normalizer.type: missing", [](Json& d) { d["normalizer"] = Json::object(); }},
        BadCase{"pre_tokenizer.type = \"Whitespace\"", [](Json& d) { d["pre_tokenizer"] = {{"type", "Whitespace"}}; }},
        BadCase{"pre_tokenizer.novelty = 1", [](Json& d) { d["pre_tokenizer"]["novelty"] = 1; }},
        BadCase{"post_processor.type = \"RobertaProcessing\"", [](Json& d) { d["post_processor"] = {{"type", "RobertaProcessing"}}; }},
        BadCase{"no entry \"<y>\"",
                [](Json& d) {
                  d["post_processor"] = {{"type", "TemplateProcessing"}, {"single", {{{"SpecialToken", {{"id", "<y>"}}}}}}};
                }},
        BadCase{"post_processor.special_tokens.<y>.ids = [555]: no token has the id 555",
                [](Json& d) {
                  d["post_processor"] = {{"type", "TemplateProcessing"},
                                         {"single", {{{"SpecialToken", {{"id", "<y>"}}}}}},
                                         {"special_tokens", {{"<y>", {{"ids", {555}}}}}}};
                }},
        BadCase{"lacks the Sequence A", [](Json& d) { d["post_processor"] = {{"type", "TemplateProcessing"}, {"single", Json::array()}}; }},
        BadCase{"decoder: missing or null", [](Json& d) { d["decoder"] = nullptr; }},
        BadCase{"decoder.type = \"WordPiece\"", [](Json& d) { d["decoder"] = {{"type", "WordPiece"}}; }},
        BadCase{"decoder.decoders[1]: ByteFallback behind Fuse",
                [](Json& d) { d["decoder"] = {{"type", "Sequence"}, {"decoders", {{{"type", "Fuse"}}, {{"type", "ByteFallback"}}}}}; }},
        BadCase{"decoder.decoders[1].stop = 1",
                [](Json& d) {
                  d["decoder"] = {{"type", "Sequence"},
                                  {"decoders", {{{"type", "Fuse"}}, {{"type", "Strip"}, {"content", " "}, {"start", 0}, {"stop", 1}}}}};
                }},
        BadCase{"added_tokens = {}", [](Json& d) { d["added_tokens"] = Json::object(); }},
        BadCase{"added_tokens[0].content = \"\"", [](Json& d) { d["added_tokens"][0]["content"] = ""; }},
        BadCase{"added_tokens[0].id = -1", [](Json& d) { d["added_tokens"][0]["id"] = -1; }},
        BadCase{"added_tokens[0].id = 1e+300", [](Json& d) { d["added_tokens"][0]["id"] = 1e300; }},
        BadCase{"added_tokens[0].glue = true", [](Json& d) { d["added_tokens"][0]["glue"] = true; }},
        BadCase{"added_tokens[1].id = 300: listed twice", [](Json& d) { d["added_tokens"].push_back(added_token(300, "<y>")); }},
        BadCase{"added_tokens[1].content = \"<x>\": listed twice", [](Json& d) { d["added_tokens"].push_back(added_token(301, "<x>")); }},
        BadCase{"added_tokens: \"<y>\" with id 97: model.vocab gives this id to \"a\"", [](Json& d) { d["added_tokens"].push_back(added_token(97, "<y>")); }},
        BadCase{"added_tokens: \"a\" with id 400: model.vocab gives this content the id 97", [](Json& d) { d["added_tokens"].push_back(added_token(400, "a")); }}));

TEST(BadTokenizerText, IsRefusedBeforeAnythingIsBuilt) {
  const std::string good = byte_level_json().dump();
  expect_refused("", "not valid JSON");
  expect_refused("[]", "must be a JSON object");
  expect_refused("7", "must be a JSON object");
  expect_refused(good + "x", "not valid JSON");
  expect_refused(good.substr(0, good.size() - 1), "not valid JSON");
  expect_refused(good.substr(0, good.size() / 2), "");
  expect_refused("{\"version\": \"\xFF\"}", "not valid JSON at byte");
  expect_refused(R"({"version": 1e999})", "1e999");
  expect_refused(R"({"a": 1, "a": 2})", "duplicate key \"a\"");
  expect_refused(R"({"model": {"vocab": {"x": 1, "x": 2}}})", "duplicate key \"x\"");
  expect_refused(R"({"model": {"vocab": {}, "vocab": {}}})", "duplicate key \"vocab\"");
  expect_refused(R"({"a": )" + std::string(3000, '[') + std::string(3000, ']') + "}", "nested deeper");
  expect_refused(R"({"model": {"vocab": {"x": )" + std::string(100000, '['), "model.vocab");
  expect_refused(R"({"a": )" + std::string(200, '{'), "not valid JSON");
  expect_refused(R"({"model": {"vocab": {"x": "line
"}}})",
                 "not valid JSON");
}

TEST(BadTokenizerText, EveryPrefixOfAGoodFileIsRefused) {
  const std::string good = sentencepiece_json({"\u2581", "a", "b"}, {{"a", "b"}}).dump();
  ASSERT_EQ(message_of(good), "");
  for (std::size_t length = 0; length < good.size(); length += 7) expect_refused(good.substr(0, length), "");
}

}  // namespace
}  // namespace drafthorse
