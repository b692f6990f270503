// Real tokenizer files against what the `tokenizers` package computed with them.
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "base/json.h"
#include "support/shared_data.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace drafthorse {
namespace {

using Ids = std::vector<std::int32_t>;

class GoldenTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTokenizer, EncodesDecodesAndStreamsAsTheReference) {
  DRAFTHORSE_NEEDS_SHARED(folder, std::string("fixtures/tokenizers/") + GetParam());
  DRAFTHORSE_NEEDS_SHARED(golden, std::string("golden/tokenizers/") + GetParam() + ".jsonl");
  const auto tokenizer = Tokenizer::load(folder);
  std::ifstream lines(golden);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const Json entry = parse_json(line, golden);
    const auto text = entry.at("text").get<std::string>();
    const auto ids = entry.at("ids").get<Ids>();
    const auto decoded = entry.at("decoded").get<std::string>();
    EXPECT_EQ(tokenizer->encode(text), ids) << entry.at("text");
    EXPECT_EQ(tokenizer->decode(ids), decoded) << entry.at("text");

    // Two streams that together see the ids cut at one place: what the first one holds is never more than it must be.
    StreamDecoder stream(*tokenizer);
    std::string streamed;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      streamed += stream.push(ids[i]);
      ASSERT_EQ(find_invalid_utf8(streamed), std::string::npos);
      StreamDecoder cut(*tokenizer);
      std::string head;
      for (std::size_t j = 0; j <= i && ids.size() < 64; ++j) head += cut.push(ids[j]);
      if (ids.size() < 64) {
        ASSERT_EQ(head, streamed);
        ASSERT_EQ(head + cut.finish(), replace_invalid_utf8(tokenizer->decode(std::span(ids).first(i + 1))));
      }
    }
    EXPECT_EQ(streamed + stream.finish(), decoded);
  }
  EXPECT_EQ(count, 556);
}

TEST_P(GoldenTokenizer, UserTextCannotSpellAnAddedControlToken) {
  DRAFTHORSE_NEEDS_SHARED(folder, std::string("fixtures/tokenizers/") + GetParam());
  const auto tokenizer = Tokenizer::load(folder);
  int special = 0;
  for (std::int32_t id = 0; id < tokenizer->vocab_size(); ++id) {
    if (!tokenizer->is_special(id)) continue;
    ++special;
    const std::string content(tokenizer->token_content(id));
    EXPECT_EQ(tokenizer->encode(content), Ids{id});
    const Ids plain = tokenizer->encode(content, {.match_added_tokens = false});
    for (const std::int32_t piece : plain) EXPECT_FALSE(tokenizer->is_special(piece)) << content;
    EXPECT_EQ(tokenizer->decode(plain), content);
  }
  EXPECT_GT(special, 5);
}

TEST_P(GoldenTokenizer, RandomTextRoundTrips) {
  DRAFTHORSE_NEEDS_SHARED(folder, std::string("fixtures/tokenizers/") + GetParam());
  const auto tokenizer = Tokenizer::load(folder);
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::size_t length = random() % 40; length > 0; --length) {
      // Nothing that NFC changes: Latin-1, then Han, then emoji.
      const std::uint32_t bases[] = {0x00, 0x20, 0x4E00, 0x1F600};
      append_utf8(text, bases[random() % 4] + random() % 0x50);
    }
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenTokenizer, testing::Values("qwen3", "llama3_1", "gemma3"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(GoldenTokenizerFacts, SpecialIdsAreThoseOfTheFiles) {
  DRAFTHORSE_NEEDS_SHARED(folder, "fixtures/tokenizers");
  const auto qwen = Tokenizer::load(folder + "/qwen3");
  EXPECT_EQ(qwen->bos_id(), std::nullopt);
  EXPECT_EQ(qwen->eos_id(), 151645);
  EXPECT_EQ(qwen->pad_id(), 151643);
  EXPECT_EQ(qwen->stop_ids(), Ids{151645});
  EXPECT_EQ(qwen->find_token("<think>"), 151667);
  EXPECT_FALSE(qwen->is_special(151667));
  EXPECT_FALSE(qwen->adds_bos());
  EXPECT_EQ(qwen->encode("a", {.add_special = true}), qwen->encode("a"));
  EXPECT_NE(qwen->chat_template(), nullptr);

  const auto llama = Tokenizer::load(folder + "/llama3_1");
  EXPECT_EQ(llama->bos_id(), 128000);
  EXPECT_EQ(llama->vocab_size(), 128256);
  EXPECT_EQ(llama->encode("", {.add_special = true}), Ids{128000});
  EXPECT_EQ(llama->encode("<|begin_of_text|>", {.add_special = true}), Ids{128000});

  const auto gemma = Tokenizer::load(folder + "/gemma3");
  EXPECT_EQ(gemma->bos_id(), 2);
  EXPECT_EQ(gemma->eos_id(), 106);
  EXPECT_EQ(gemma->find_token("<start_of_turn>"), 105);
  EXPECT_TRUE(gemma->adds_bos());
}

TEST(GoldenTokenizerFacts, TheDemonstrationTargetsTokenizerLoads) {
  DRAFTHORSE_NEEDS_SHARED(folder, "models/demo/target");
  const auto tokenizer = Tokenizer::load(folder);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("def f(x):\n    return x\n")), "def f(x):\n    return x\n");
}

}  // namespace
}  // namespace drafthorse
