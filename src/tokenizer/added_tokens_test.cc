#include "tokenizer/added_tokens.h"

#include <gtest/gtest.h>

#include <string>

namespace drafthorse {
namespace {

/// The parts of `text` as "text|<id>|text"; a token's swallowed white space is not shown.
std::string split(std::vector<AddedToken> tokens, const std::string& text) {
  std::vector<AddedTokenMatcher::Part> parts;
  AddedTokenMatcher(std::move(tokens)).split(text, parts);
  std::string shown;
  for (const auto& part : parts) {
    if (!shown.empty()) shown += '|';
    shown += part.id < 0 ? std::string(part.text) : std::string("<").append(std::to_string(part.id)).append(">");
  }
  return shown;
}

AddedToken token(std::int32_t id, const std::string& content) {
  AddedToken made;
  made.id = id;
  made.content = content;
  return made;
}

// The expected values of this file are those of the `tokenizers` package (0.23) for the same flags and texts.

TEST(AddedTokens, TheLongestContentWinsAtTheLeftmostPlace) {
  const std::vector<AddedToken> tokens = {token(0, "<|im"), token(1, "<|im_start|>"), token(2, "im_")};
  EXPECT_EQ(split(tokens, "<|im_start|>"), "<1>");
  EXPECT_EQ(split(tokens, "<|im_start|"), "<0>|_start|");
  EXPECT_EQ(split(tokens, "<|im_start|><|im"), "<1>|<0>");
  EXPECT_EQ(split(tokens, "a<|im_end"), "a|<0>|_end");
  EXPECT_EQ(split(tokens, ""), "");
  EXPECT_EQ(split({}, "<|im"), "<|im");
}

TEST(AddedTokens, ContentMayBeAnyText) {
  EXPECT_EQ(split({token(7, "\u20AC"), token(8, std::string(1, '\0')), token(9, "\xF0\x9F\x98\x80")},
                  std::string("a\u20AC\0\xF0\x9F\x98\x80", 9)),
            "a|<7>|<8>|<9>");
}

TEST(AddedTokens, ASingleWordTokenTouchesNoWordCharacter) {
  AddedToken mark = token(0, "<m>");
  mark.single_word = true;
  EXPECT_EQ(split({mark}, "<m>"), "<0>");
  EXPECT_EQ(split({mark}, "a<m>"), "a<m>");
  EXPECT_EQ(split({mark}, "<m>b"), "<m>b");
  EXPECT_EQ(split({mark}, "a <m> b"), "a |<0>| b");
  EXPECT_EQ(split({mark}, "_<m>"), "_<m>");
  EXPECT_EQ(split({mark}, "\u0301<m>"), "\u0301<m>");
  EXPECT_EQ(split({mark}, "<m>\u200D"), "<m>\u200D");
  EXPECT_EQ(split({mark}, "-<m>-"), "-|<0>|-");
  EXPECT_EQ(split({mark}, "<m><m>"), "<0>|<0>");
  // A dropped match is not tried again with shorter content.
  AddedToken ab = token(1, "ab");
  ab.single_word = true;
  EXPECT_EQ(split({ab, token(2, "b")}, "xab"), "xab");
  EXPECT_EQ(split({ab, token(2, "b")}, "ab"), "<1>");
}

TEST(AddedTokens, LstripSwallowsWhiteSpaceOnTheLeft) {
  AddedToken mark = token(0, "<m>");
  mark.lstrip = true;
  EXPECT_EQ(split({mark}, "a <m> b"), "a|<0>| b");
  EXPECT_EQ(split({mark}, "\n \t<m>\u00A0z"), "<0>|\u00A0z");
  EXPECT_EQ(split({mark}, "a\u2003<m>"), "a|<0>");
  EXPECT_EQ(split({mark}, "<m> <m>"), "<0>|<0>");
}

TEST(AddedTokens, RstripSwallowsWhiteSpaceOnTheRight) {
  AddedToken mark = token(0, "<m>");
  mark.rstrip = true;
  EXPECT_EQ(split({mark}, " <m> "), " |<0>");
  EXPECT_EQ(split({mark}, "\n<m>\u00A0\u2003\nz"), "\n|<0>|z");
  EXPECT_EQ(split({mark}, "<m> <m>"), "<0>|<0>");
  mark.lstrip = true;
  EXPECT_EQ(split({mark}, "a <m> <m> b"), "a|<0>|<0>|b");
}

TEST(AddedTokens, ATokenInsideSwallowedWhiteSpaceIsATokenAgain) {
  AddedToken mark = token(0, "<m>");
  mark.rstrip = true;
  EXPECT_EQ(split({mark, token(1, "  ")}, "<m>    x"), "<0>|<1>|<1>|x");
  EXPECT_EQ(split({mark, token(1, "  ")}, "<m>   x"), "<0>|<1>| x");
  EXPECT_EQ(split({mark, token(1, "  ")}, "<m>  "), "<0>|<1>");
}

TEST(AddedTokens, WhiteSpaceTokensThatSwallowWhiteSpaceTakeLinearTime) {
  AddedToken line = token(0, "\n");
  line.lstrip = true;
  line.rstrip = true;
  std::vector<AddedTokenMatcher::Part> parts;
  const std::string text(300000, '\n');  // scanning each run anew would be 10^11 steps
  AddedTokenMatcher({line}).split(text, parts);
  EXPECT_EQ(parts.size(), text.size());
}

}  // namespace
}  // namespace drafthorse
