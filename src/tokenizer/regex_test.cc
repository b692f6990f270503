#include "tokenizer/regex.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "tokenizer/regex_dialect.h"
#include "tokenizer/unicode_class.h"
#include "tokenizer/utf8.h"

namespace drafthorse {
namespace {

std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
  const Regex regex(pattern, "pattern");
  std::vector<std::string> found;
  RegexMatcher(regex).for_each_match(
      text, [&](ByteRange range) { found.push_back(text.substr(range.begin, range.end - range.begin)); });
  return found;
}

using Strings = std::vector<std::string>;

TEST(Regex, WhiteSpaceIsTheUnicodePropertyNotPcresOwn) {
  EXPECT_EQ(matches(R"(\s+)", "a\u180E b\u2028\u0085"), (Strings{" ", "\u2028\u0085"}));
  EXPECT_EQ(matches(R"([^\s]+)", "a\u180E b"), (Strings{"a\u180E", "b"}));
  EXPECT_EQ(matches(R"(\S+)", "a\u180E b"), (Strings{"a\u180E", "b"}));
}

TEST(Regex, WordCharactersAreThoseOfTheFilesDialect) {
  EXPECT_EQ(matches(R"(\w+)", "1f_\u2460\u00E9\u0301-\u200Dx"), (Strings{"1f_", "\u00E9\u0301", "x"}));
  EXPECT_EQ(matches(R"([\w-]+)", "ab-c d"), (Strings{"ab-c", "d"}));
  EXPECT_EQ(matches(R"(\W+)", "ab-+c"), (Strings{"-+"}));
}

TEST(Regex, CaseFoldingReachesTheLongS) { EXPECT_EQ(matches("(?i:'s)", "'S'\u017F"), (Strings{"'S", "'\u017F"})); }

TEST(Regex, AnchorsMatchAtEveryLine) { EXPECT_EQ(matches("^a|b$", "ab\na\nxb"), (Strings{"a", "b", "a", "b"})); }

TEST(Regex, AnEmptyMatchBehindAMatchIsSkipped) {
  EXPECT_EQ(matches("x*", "axxb"), (Strings{"", "xx", ""}));
  EXPECT_EQ(matches("(?=b)", "\u00E9bb"), (Strings{"", ""}));
}

TEST(Regex, AConstructThatMeansSomethingElseHereIsRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"[a-z&&[^b]]", "&&"},    {"[a[bc]]", "class inside"},
      {R"(\h)", "\\h"},         {R"(a\b)", "\\b"},
      {R"([\W])", "\\W"},       {"a{,3}", "{,"},
      {R"(\p{N}{1,3}+)", "}+"}, {"(?m)a.b", "(?m"},
      {"(?x: a )", "(?x"},      {"(*UTF)a", "(*"},
      {"(?C1)a", "(?C"},        {"(?R)", "(?R"},
      {"(?<n>a)", "(?<"},       {"a\\", "backslash"},
      {R"(\Qa\E)", "\\Q"},      {R"(a\C)", "\\C"},
      {R"(\v)", "\\v"},         {"[[:alpha:", "class inside"}};
  for (const auto& [pattern, named] : refused) {
    try {
      to_pcre2_syntax(pattern, "file: key");
      ADD_FAILURE() << pattern;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).rfind("file: key: ", 0), 0U);
    }
  }
}

TEST(Regex, WhatMeansTheSameInBothDialectsPassesUnchanged) {
  for (const std::string pattern :
       {R"((?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\p{L}]+[\r\n]*)", R"([]a]\[[^]\]&x]a)",
        R"(a(?!b)(?<=c)(?<!d)(?>e)(?-i)f++g*?)", R"([[:alpha:]&]+)", R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~])"}) {
    EXPECT_EQ(to_pcre2_syntax(pattern, "x"), pattern);
  }
}

TEST(Regex, APatternThatDoesNotCompileIsAnError) {
  EXPECT_THROW(Regex("(a", "x"), Error);
  EXPECT_THROW(Regex("(((a{1000}){1000}){1000}){1000}", "x"), Error);
  EXPECT_THROW(Regex(std::string(100000, 'a'), "x"), Error);
  EXPECT_THROW(Regex(std::string(400, '(') + std::string(400, ')'), "x"), Error);
}

TEST(Regex, ExplosiveBacktrackingEndsInAnError) {
  EXPECT_THROW(matches("(?:a+)+(?:b|e)", std::string(64, 'a') + "c"), Error);
  EXPECT_THROW(matches("(?:a|aa)+$", std::string(64, 'a') + "c"), Error);
}

TEST(Regex, AMatchThatNeedsADeepStackStillSucceeds) {
  const std::string text(200000, 'a');
  EXPECT_EQ(matches("(?:a|b)*c|a+", text), Strings{text});
}

TEST(UnicodeClass, AgreesWithPcre2OnEveryCodePoint) {
  const Regex word(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}])", "x", /*verbatim=*/true);
  const Regex space(R"(\p{White_Space})", "x", /*verbatim=*/true);
  const Regex unassigned(R"(\p{Cn})", "x", /*verbatim=*/true);
  RegexMatcher is_unassigned(unassigned);
  RegexMatcher is_word(word);
  RegexMatcher is_space(space);
  for (std::uint32_t point = 0; point <= 0x10FFFF; ++point) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, point);
    // The two libraries' Unicode versions differ: what either does not know yet says nothing.
    if (is_unassigned.search(text, 0)) continue;
    if (utf8proc_category(static_cast<utf8proc_int32_t>(point)) == UTF8PROC_CATEGORY_CN) continue;
    ASSERT_EQ(is_word_character(point), is_word.search(text, 0).has_value()) << std::hex << point;
    ASSERT_EQ(is_white_space(point), is_space.search(text, 0).has_value()) << std::hex << point;
  }
}

}  // namespace
}  // namespace drafthorse
