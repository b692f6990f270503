#include "tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace drafthorse {
namespace {

using Strings = std::vector<std::string>;

Strings split(const Json& component, const std::string& text) {
  const PreTokenizer pre_tokenizer(component, "f");
  PreTokenizer::Scratch scratch(pre_tokenizer);
  std::vector<PreTokenizer::Piece> pieces;
  pre_tokenizer.split(text, scratch, pieces);
  Strings found;
  for (const auto& piece : pieces) found.push_back(text.substr(piece.begin, piece.end - piece.begin));
  return found;
}

Json split_json(const Json& pattern, const std::string& behavior, bool invert = false) {
  return {{"type", "Split"}, {"pattern", pattern}, {"behavior", behavior}, {"invert", invert}};
}

// The expected values of the behaviours are those of the `tokenizers` package (0.23).

TEST(PreTokenizer, TheFiveBehavioursOfSplit) {
  const std::string text = "-a--bc-d--";
  for (const Json& pattern : {Json{{"String", "-"}}, Json{{"Regex", "-"}}}) {
    const auto pieces = [&](const std::string& behavior, bool invert) {
      return split(split_json(pattern, behavior, invert), text);
    };
    EXPECT_EQ(pieces("Removed", false), (Strings{"a", "bc", "d"}));
    EXPECT_EQ(pieces("Removed", true), (Strings{"-", "-", "-", "-", "-", "-"}));
    EXPECT_EQ(pieces("Isolated", false), (Strings{"-", "a", "-", "-", "bc", "-", "d", "-", "-"}));
    EXPECT_EQ(pieces("Contiguous", false), (Strings{"-", "a", "--", "bc", "-", "d", "--"}));
    EXPECT_EQ(pieces("MergedWithPrevious", false), (Strings{"-", "a-", "-", "bc-", "d-", "-"}));
    EXPECT_EQ(pieces("MergedWithPrevious", true), (Strings{"-a", "-", "-bc", "-d", "-", "-"}));
    EXPECT_EQ(pieces("MergedWithNext", false), (Strings{"-a", "-", "-bc", "-d", "-", "-"}));
    EXPECT_EQ(pieces("MergedWithNext", true), (Strings{"-", "a-", "-", "bc-", "d-", "-"}));
  }
}

TEST(PreTokenizer, TextBetweenMatchesBecomesPiecesAndEmptyMatchesCut) {
  EXPECT_EQ(split(split_json({{"Regex", "x+"}}, "Isolated"), "axxb"), (Strings{"a", "xx", "b"}));
  EXPECT_EQ(split(split_json({{"Regex", "x*"}}, "Isolated"), "axxb\u00E9"), (Strings{"a", "xx", "b", "\u00E9"}));
  EXPECT_EQ(split(split_json({{"Regex", "(?=b)"}}, "Isolated"), "abcbb"), (Strings{"a", "bc", "b", "b"}));
  EXPECT_EQ(split(nullptr, "a b"), Strings{"a b"});
  EXPECT_EQ(split(nullptr, ""), Strings{});
}

TEST(PreTokenizer, EachStepOfASequenceSeesThePiecesOfTheOneBefore) {
  const Json sequence = {{"type", "Sequence"},
                         {"pretokenizers", Json::array({split_json({{"Regex", R"(\p{N}{1,3})"}}, "Isolated"),
                                                        split_json({{"Regex", "a(?!.)|^b"}}, "Isolated")})}};
  EXPECT_EQ(split(sequence, "ba1234ba"), (Strings{"b", "a", "123", "4", "b", "a"}));
}

TEST(PreTokenizer, ByteLevelWithRegexSplitsAsGpt2) {
  const Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  EXPECT_EQ(split(byte_level, "I'll be  there\n\n 'S 12ab"),
            (Strings{"I", "'ll", " be", " ", " there", "\n\n", " '", "S", " 12", "ab"}));
  EXPECT_TRUE(PreTokenizer(byte_level, "f").byte_level());
}

TEST(PreTokenizer, UnknownTypesOptionsAndOrdersAreErrors) {
  const Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const Json split_a = split_json({{"String", "a"}}, "Isolated");
  const std::vector<std::pair<Json, std::string>> bad = {
      {{{"type", "Metaspace"}}, "pre_tokenizer.type = \"Metaspace\""},
      {{{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", false}}, "add_prefix_space = true"},
      {{{"type", "ByteLevel"}, {"use_regex", false}}, "add_prefix_space"},
      {{{"type", "Sequence"}, {"pretokenizers", Json::array({byte_level, split_a})}}, "behind ByteLevel"},
      {{{"type", "Sequence"}, {"pretokenizers", Json::array({split_a, {{"type", "Digits"}}})}},
       "pre_tokenizer.pretokenizers[1].type = \"Digits\""},
      {{{"type", "Sequence"}}, "pretokenizers"},
      {{{"type", "Sequence"}, {"pretokenizers", Json(std::vector<Json>(65, split_a))}}, "steps"},
      {split_json({{"String", "a"}}, "isolated"), "behavior = \"isolated\""},
      {split_json({{"Glob", "a"}}, "Isolated"), "pattern"},
      {split_json("a", "Isolated"), "pattern"},
      {split_json({{"Regex", ""}}, "Isolated"), "is empty"},
      {split_json({{"Regex", "("}}, "Isolated"), "pre_tokenizer.pattern = \"(\": the pattern does not compile"}};
  for (const auto& [component, named] : bad) {
    try {
      PreTokenizer(component, "f");
      ADD_FAILURE() << component;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace drafthorse
