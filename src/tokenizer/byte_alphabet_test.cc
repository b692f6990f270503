#include "tokenizer/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>

namespace drafthorse {
namespace {

TEST(ByteAlphabet, IsABijectionOn256Characters) {
  std::set<std::uint32_t> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const std::uint32_t point = code_point_of_byte(static_cast<std::uint8_t>(byte));
    EXPECT_TRUE(seen.insert(point).second);
    EXPECT_EQ(byte_of_code_point(point), byte);
  }
  EXPECT_EQ(*seen.rbegin(), 0x143U);
}

TEST(ByteAlphabet, KnownCharacters) {
  EXPECT_EQ(code_point_of_byte(0x00), 0x100U);
  EXPECT_EQ(code_point_of_byte(0x0A), 0x10AU);
  EXPECT_EQ(code_point_of_byte(0x20), 0x120U);
  EXPECT_EQ(code_point_of_byte(0x7F), 0x121U);
  EXPECT_EQ(code_point_of_byte(0xA0), 0x142U);
  EXPECT_EQ(code_point_of_byte(0xAD), 0x143U);
  EXPECT_EQ(code_point_of_byte('A'), std::uint32_t{'A'});
  EXPECT_EQ(byte_of_code_point(0x144), std::nullopt);
  EXPECT_EQ(byte_of_code_point(' '), std::nullopt);
}

TEST(ByteAlphabet, TextOutsideTheAlphabetIsNotBytes) {
  EXPECT_EQ(to_byte_alphabet(" \xE9"), "\u0120\u00E9");
  EXPECT_EQ(from_byte_alphabet("\u0120\u00E9"), " \xE9");
  EXPECT_EQ(from_byte_alphabet("a b"), std::nullopt);
}

TEST(ByteAlphabet, FallbackTokensAreExactlySixCharactersInUpperCase) {
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(byte_of_fallback_token(fallback_token_of_byte(static_cast<std::uint8_t>(byte))), byte);
  }
  EXPECT_EQ(fallback_token_of_byte(10), "<0x0A>");
  for (const char* other : {"<0x0a>", "<0xA>", "0x0A", "<0x0A> ", "<0xG0>", ""}) {
    EXPECT_EQ(byte_of_fallback_token(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace drafthorse
