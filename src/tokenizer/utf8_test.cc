#include "tokenizer/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace drafthorse {
namespace {

TEST(Utf8, EveryScalarValueRoundTripsAndIsValid) {
  std::string text;
  for (std::uint32_t point = 0; point <= 0x10FFFF; ++point) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    append_utf8(text, point);
  }
  ASSERT_EQ(find_invalid_utf8(text), std::string::npos);
  std::size_t position = 0;
  for (std::uint32_t point = 0; point <= 0x10FFFF; ++point) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    const Utf8Unit unit = utf8_unit(text, position);
    ASSERT_EQ(unit.kind, Utf8Unit::kComplete);
    ASSERT_EQ(unit.code_point, point);
    ASSERT_EQ(next_code_point(text, position), point);
  }
  EXPECT_EQ(position, text.size());
}

TEST(Utf8, OfAllThreeByteStringsExactlyTheSpellingsOfScalarValuesAreValid) {
  // Counting needs no second decoder: 128^3 of ASCII only, 2 * 128 * 1920 of one two-byte character and one ASCII, and
  // the 61440 three-byte characters.
  std::size_t valid = 0;
  std::string text(3, '\0');
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      for (int c = 0; c < 256; ++c) {
        text = {static_cast<char>(a), static_cast<char>(b), static_cast<char>(c)};
        valid += find_invalid_utf8(text) == std::string::npos ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(valid, 128U * 128 * 128 + 2U * 128 * 1920 + 61440U);
}

TEST(Utf8, TheFirstInvalidByteIsFoundBehindLongAsciiRuns) {
  const std::string prefix(19, 'x');
  EXPECT_EQ(find_invalid_utf8(prefix + "\xC3\xA9\xFF"), 21U);
  EXPECT_EQ(find_invalid_utf8(prefix + "\xE2\x82"), 19U);
  EXPECT_EQ(find_invalid_utf8("\xED\xA0\x80" + prefix), 0U);
}

TEST(Utf8, EachMaximalSubpartBecomesOneReplacementCharacter) {
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(replace_invalid_utf8("a\x80"
                                 "b"),
            "a" + r + "b");
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF"), r + r);                  // overlong
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), r + r + r);          // surrogate
  EXPECT_EQ(replace_invalid_utf8("\xF0\x8F\xBF\xBF"), r + r + r + r);  // overlong
  EXPECT_EQ(replace_invalid_utf8("\xF5\x80"), r + r);
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), r + r + r + r);  // above U+10FFFF
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98"
                                 "a"),
            r + "a");  // one subpart of three bytes
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82\xE2\x82\xAC"), r + "\u20AC");
  EXPECT_EQ(replace_invalid_utf8("x\xF0\x9F"), "x" + r);  // truncated tail
  // The example of the Unicode Standard, section 3.9, table 3-11.
  EXPECT_EQ(replace_invalid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
}

}  // namespace
}  // namespace drafthorse
