#include "tokenizer/normalizer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tokenizer/unicode_form.h"

namespace drafthorse {
namespace {

std::string normalize(const Json& component, const std::string& text) {
  return Normalizer(component, "f").normalize(text);
}

TEST(Normalizer, TheFourUnicodeForms) {
  const Json nfc = {{"type", "NFC"}}, nfd = {{"type", "NFD"}}, nfkc = {{"type", "NFKC"}}, nfkd = {{"type", "NFKD"}};
  EXPECT_EQ(normalize(nfc, "e\u0301"), "\u00E9");
  EXPECT_EQ(normalize(nfc, "\u1100\u1161\u11A8"), "\uAC01");
  EXPECT_EQ(normalize(nfc, "\u212B"), "\u00C5");                // a singleton
  EXPECT_EQ(normalize(nfc, "\u0958"), "\u0915\u093C");          // excluded from composition
  EXPECT_EQ(normalize(nfc, "q\u0307\u0323"), "q\u0323\u0307");  // reordered
  EXPECT_EQ(normalize(nfc, "\uFB01 \u2460"), "\uFB01 \u2460");
  EXPECT_EQ(normalize(nfd, "\u00E9\uAC01"), "e\u0301\u1100\u1161\u11A8");
  EXPECT_EQ(normalize(nfkc, "\uFB01 \u2460e\u0301"), "fi 1\u00E9");
  EXPECT_EQ(normalize(nfkd, "\u00C5\uFB01"), "A\u030Afi");
  EXPECT_EQ(normalize(nfkd, "\u00A0\u00B2"), " 2");
  EXPECT_EQ(normalize(nfkd, "\uFDFA").size(), 33U);  // the longest decomposition: 18 characters
}

TEST(Normalizer, StepsOfASequenceRunInOrderAndEmptyTextStaysEmpty) {
  const Json prepend = {{"type", "Prepend"}, {"prepend", "_"}};
  const Json replace = {{"type", "Replace"}, {"pattern", {{"String", "ab"}}}, {"content", "b"}};
  const Json sequence = {{"type", "Sequence"}, {"normalizers", Json::array({prepend, replace, replace})}};
  EXPECT_EQ(normalize(sequence, "aab"), "_b");
  EXPECT_EQ(normalize(sequence, ""), "");
  EXPECT_EQ(normalize(nullptr, "x"), "x");
  EXPECT_TRUE(Normalizer(nullptr, "f").is_identity());
}

TEST(UnicodeForm, AlternatingMarksAreOrderedWithoutQuadraticTime) {
  std::string text = "a";
  for (int i = 0; i < 200000; ++i) text += "\u0301\u0316";  // classes 230 and 220: every pair is out of order
  const std::string ordered = to_unicode_form(text, /*compose=*/false, /*compatibility=*/false);
  std::string expected = "a";
  for (int i = 0; i < 200000; ++i) expected += "\u0316";
  for (int i = 0; i < 200000; ++i) expected += "\u0301";
  EXPECT_TRUE(ordered == expected);
  EXPECT_EQ(to_unicode_form(text, true, false).substr(0, 4), "\u00E1\u0316");
}

TEST(Normalizer, UnknownTypesAndOptionsAreErrors) {
  EXPECT_THROW(normalize({{"type", "Lowercase"}}, ""), Error);
  EXPECT_THROW(normalize({{"type", "NFC"}, {"extra", 1}}, ""), Error);
  EXPECT_THROW(normalize({{"type", "Replace"}, {"pattern", {{"Regex", "a"}}}, {"content", ""}}, ""), Error);
  EXPECT_THROW(normalize({{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", ""}}, ""), Error);
  EXPECT_THROW(normalize("NFC", ""), Error);
}

}  // namespace
}  // namespace drafthorse
