#include "tokenizer/stream_decoder.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "support/tiny_tokenizer.h"
#include "tokenizer/utf8.h"

namespace drafthorse {
namespace {

std::vector<std::int32_t> bytes(std::string_view text, std::int32_t first_id) {
  std::vector<std::int32_t> ids;
  for (const char byte : text) ids.push_back(first_id + static_cast<unsigned char>(byte));
  return ids;
}

TEST(StreamDecoder, ACharacterInPartsArrivesWithItsLastByte) {
  const auto tokenizer = tokenizer_of(byte_level_json());
  StreamDecoder stream(*tokenizer);
  const std::vector<std::string> expected = {"", "", "", "\xF0\x9F\x98\x80", "", "\u00E9", "", "", "\u20AC", "x"};
  std::vector<std::string> got;
  for (const std::int32_t id : bytes("\xF0\x9F\x98\x80\u00E9\u20ACx", 0)) got.push_back(stream.push(id));
  EXPECT_EQ(got, expected);
  EXPECT_EQ(stream.finish(), "");
}

TEST(StreamDecoder, WhatCannotBecomeACharacterIsReplacedAtOnce) {
  const std::string r(kReplacementCharacter);
  const auto tokenizer = tokenizer_of(byte_level_json());
  StreamDecoder stream(*tokenizer);
  EXPECT_EQ(stream.push(0x80), r);
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.push(0x82), "");
  EXPECT_EQ(stream.push('a'), r + "a");
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.push(0xE2), r);
  EXPECT_EQ(stream.finish(), r);
  EXPECT_EQ(stream.finish(), "");
}

TEST(StreamDecoder, AfterFinishItIsAsNew) {
  const auto tokenizer = tokenizer_of(sentencepiece_json({"\u2581", "a"}, {}));
  StreamDecoder stream(*tokenizer);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(stream.push(259), "");  // the leading space of the text
    EXPECT_EQ(stream.push(260), "a");
    EXPECT_EQ(stream.push(259), " ");
    EXPECT_EQ(stream.push(3 + 0xC3), "");
    EXPECT_EQ(stream.finish(), kReplacementCharacter);
  }
}

TEST(StreamDecoder, UnknownIdsSayNothingAndSpecialOnesOnlyWhenAsked) {
  Json document = byte_level_json();
  document["added_tokens"] = Json::array({added_token(300, "<end>"), added_token(301, "<think>")});
  document["added_tokens"][1]["special"] = false;
  const auto tokenizer = tokenizer_of(document);
  StreamDecoder all(*tokenizer);
  StreamDecoder visible(*tokenizer, /*skip_special=*/true);
  EXPECT_EQ(all.push(299), "");
  EXPECT_EQ(all.push(-1), "");
  EXPECT_EQ(all.push(1 << 30), "");
  EXPECT_EQ(all.push(300), "<end>");
  EXPECT_EQ(visible.push(300), "");
  EXPECT_EQ(visible.push(301), "<think>");
  // A dropped token does not cut a character.
  EXPECT_EQ(visible.push(0xC3), "");
  EXPECT_EQ(visible.push(300), "");
  EXPECT_EQ(visible.push(0xA9), "\u00E9");
}

TEST(StreamDecoder, AnyIdsJoinToTheBulkDecodeOfTheSameIds) {
  const std::vector<std::unique_ptr<Tokenizer>> tokenizers = [] {
    std::vector<std::unique_ptr<Tokenizer>> made;
    made.push_back(tokenizer_of(byte_level_json({{"\u00E2", "\u0124"}, {"\u0120", "a"}, {"\u00F0", "\u0141"}})));
    made.push_back(tokenizer_of(sentencepiece_json({"\u2581", "a", "\u20AC"}, {{"\u2581", "a"}})));
    return made;
  }();
  std::mt19937 random(7);
  for (const auto& tokenizer : tokenizers) {
    for (int round = 0; round < 3000; ++round) {
      std::vector<std::int32_t> ids(random() % 12);
      for (auto& id : ids) {
        id = static_cast<std::int32_t>(random() % static_cast<unsigned>(tokenizer->vocab_size()));
        if (random() % 2 == 0)
          id = static_cast<std::int32_t>(0x80 + random() % 0x83);  // bytes that may form characters
      }
      for (const bool skip : {false, true}) {
        StreamDecoder stream(*tokenizer, skip);
        std::string joined;
        for (const std::int32_t id : ids) {
          const std::string part = stream.push(id);
          ASSERT_EQ(find_invalid_utf8(part), std::string::npos);
          joined += part;
        }
        joined += stream.finish();
        ASSERT_EQ(joined, replace_invalid_utf8(tokenizer->decode(ids, skip)));
      }
    }
  }
}

}  // namespace
}  // namespace drafthorse
