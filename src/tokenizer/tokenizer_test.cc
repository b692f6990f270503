#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "support/tiny_tokenizer.h"

namespace drafthorse {
namespace {

using Ids = std::vector<std::int32_t>;

Json template_json(const Json& single, const std::string& token, std::int32_t id) {
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", Json::array()},
          {"special_tokens", {{token, {{"id", token}, {"ids", Json::array({id})}, {"tokens", Json::array({token})}}}}}};
}

const Json kTextItem = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};

Json special_item(const std::string& token) { return {{"SpecialToken", {{"id", token}, {"type_id", 0}}}}; }

TEST(Tokenizer, EveryByteOfATextComesBack) {
  const auto tokenizer = tokenizer_of(byte_level_json({{"\u0120", "a"}, {"\u00C3", "\u00A9"}}));
  const std::string text = std::string("a a\u00E9\0\x7F\r\n \u4E2D", 14);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  EXPECT_EQ(tokenizer->encode(" a"), Ids{256});
  EXPECT_EQ(tokenizer->encode("\u00E9"), Ids{257});
  EXPECT_EQ(tokenizer->encode(""), Ids{});
  for (std::int32_t byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(tokenizer->decode(Ids{byte}), std::string(1, static_cast<char>(byte)));
  }
}

TEST(Tokenizer, TextThatIsNotUtf8IsAnErrorNamingTheByte) {
  const auto tokenizer = tokenizer_of(byte_level_json());
  for (const char* text : {"ab\xFF", "ab\xC3", "ab\xED\xA0\x80", "ab\xC0\xAF"}) {
    try {
      tokenizer->encode(text);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "text: not valid UTF-8 at byte 2");
    }
  }
}

TEST(Tokenizer, MergesAsStringsAndAsPairsGiveEqualIds) {
  Json pairs = byte_level_json({{"a", "b"}, {"ab", "c"}});
  Json lines = pairs;
  lines["model"]["merges"] = Json::array({"#version: 0.2", "a b", "ab c"});
  for (const char* text : {"abcab", "cab", "aabbcc"}) {
    EXPECT_EQ(tokenizer_of(pairs)->encode(text), tokenizer_of(lines)->encode(text));
  }
  EXPECT_EQ(tokenizer_of(lines)->encode("abcab"), (Ids{257, 256}));
}

TEST(Tokenizer, TheOrderOfKeysInTheFileDoesNotMatter) {
  const Json document = byte_level_json({{"a", "b"}});
  Json model = {{"merges", document["model"]["merges"]}, {"vocab", document["model"]["vocab"]}, {"type", "BPE"}};
  Json turned = {{"model", model}};
  for (const char* key : {"decoder", "pre_tokenizer", "version"}) turned[key] = document[key];
  EXPECT_EQ(tokenizer_of(turned)->encode("cab"), (Ids{'c', 256}));
}

// The expected ids of the SentencePiece kind are those of the `tokenizers` package (0.23) for the same file.
Json llama2_json() {
  return sentencepiece_json({"\u2581", "a", "b", "c", "d"},
                            {{"a", "b"}, {"\u2581", "a"}, {"c", "d"}, {"ab", "cd"}, {"\u2581", "ab"}});
}

TEST(Tokenizer, SentencePieceStyleEncodesAndDecodes) {
  const auto tokenizer = tokenizer_of(llama2_json());
  const std::vector<std::pair<std::string, Ids>> cases = {{"", {}},
                                                          {"a", {265}},
                                                          {"ab", {268}},
                                                          {"abcd abcd", {259, 267, 259, 267}},
                                                          {"  ab", {259, 259, 268}},
                                                          {"\u00E9\u20AC", {259, 198, 172, 229, 133, 175}},
                                                          {"a\nb", {265, 13, 261}},
                                                          {"\xF0\x9F\x98\x80"
                                                           "a",
                                                           {259, 243, 162, 155, 131, 260}}};
  for (const auto& [text, ids] : cases) {
    EXPECT_EQ(tokenizer->encode(text), ids) << text;
    EXPECT_EQ(tokenizer->decode(ids), text);
  }
  EXPECT_EQ(tokenizer->encode("<s>ab</s> cd"), (Ids{1, 268, 2, 259, 259, 266}));
  EXPECT_EQ(tokenizer->decode(Ids{1, 268, 2, 259, 259, 266}), "<s> ab</s>  cd");
  EXPECT_EQ(tokenizer->decode(Ids{1, 268, 2, 259, 259, 266}, true), "ab  cd");
}

TEST(Tokenizer, TheLeadingStripTakesOneSpaceOfTheWholeText) {
  const auto tokenizer = tokenizer_of(llama2_json());
  EXPECT_EQ(tokenizer->decode(Ids{259, 259, 260}), " a");
  EXPECT_EQ(tokenizer->decode(Ids{260, 259, 260}), "a a");
  EXPECT_EQ(tokenizer->decode(Ids{3 + 0x20, 260}), "a");
  EXPECT_EQ(tokenizer->token_bytes(259), " ");
}

TEST(Tokenizer, ByteTokensDecodeToTheirBytesAlsoWhenTheyAreNoText) {
  const auto tokenizer = tokenizer_of(llama2_json());
  EXPECT_EQ(tokenizer->decode(Ids{3 + 0xE2, 3 + 0x82, 3 + 0xAC, 3 + 0xC3, 260}),
            "\u20AC\xC3"
            "a");
}

TEST(Tokenizer, ANormalizedAddedTokenIsFoundInTheNormalizedText) {
  Json document = byte_level_json();
  document["normalizer"] = {{"type", "NFC"}};
  document["added_tokens"] = Json::array({added_token(300, "e\u0301!"), added_token(301, "e\u0301?")});
  document["added_tokens"][0]["normalized"] = true;
  const auto tokenizer = tokenizer_of(document);
  EXPECT_EQ(tokenizer->encode("\u00E9!"), Ids{300});
  EXPECT_EQ(tokenizer->encode("xe\u0301!"), (Ids{'x', 300}));
  EXPECT_EQ(tokenizer->encode("e\u0301?"), Ids{301});
  EXPECT_EQ(tokenizer->encode("\u00E9?"), (Ids{0xC3, 0xA9, '?'}));

  Json llama2 = llama2_json();
  llama2["added_tokens"][0]["normalized"] = true;
  EXPECT_EQ(tokenizer_of(llama2)->encode("<s>ab"), (Ids{1, 264}));
  EXPECT_EQ(tokenizer_of(llama2)->encode("ab<s>"), (Ids{268, 3 + '<', 3 + 's', 3 + '>'}));
}

TEST(Tokenizer, AddedTokensMatchWhateverTheirSpecialFlagAndMayLieAboveTheVocabulary) {
  Json document = byte_level_json();
  document["added_tokens"] = Json::array({added_token(1000, "<think>"), added_token(2000, "<|end|>")});
  document["added_tokens"][0]["special"] = false;
  const auto tokenizer = tokenizer_of(document);
  EXPECT_EQ(tokenizer->encode("<|end|>a<think><|end|>"), (Ids{2000, 'a', 1000, 2000}));
  EXPECT_EQ(tokenizer->decode(Ids{2000, 1000, 'a'}, true), "<think>a");
  EXPECT_EQ(tokenizer->vocab_size(), 2001);
  EXPECT_EQ(tokenizer->find_token("<think>"), 1000);
  EXPECT_EQ(tokenizer->find_token("<nope>"), std::nullopt);
  EXPECT_TRUE(tokenizer->is_special(2000));
  EXPECT_FALSE(tokenizer->is_special(1000));
  EXPECT_FALSE(tokenizer->is_special(-1));
  EXPECT_FALSE(tokenizer->has_token(1500));
  EXPECT_EQ(tokenizer->decode(Ids{1500, -7, 1 << 29}), "");
  EXPECT_EQ(tokenizer->token_content(1000), "<think>");
}

TEST(Tokenizer, TextWithoutTokenMatchingCannotSpellAControlToken) {
  // "<e>" is both a token the merges can build and a control token.
  Json document = byte_level_json({{"<", "e"}, {"<e", ">"}});
  document["added_tokens"] = Json::array({added_token(257, "<e>"), added_token(300, "<|im_end|>")});
  for (const bool ignore_merges : {false, true}) {
    document["model"]["ignore_merges"] = ignore_merges;
    const auto tokenizer = tokenizer_of(document);
    EXPECT_EQ(tokenizer->encode("x<e>"), (Ids{'x', 257}));
    EXPECT_EQ(tokenizer->encode("<e>", {.match_added_tokens = false}), (Ids{256, '>'}));
    const Ids plain = tokenizer->encode("<|im_end|>", {.match_added_tokens = false});
    EXPECT_EQ(plain.size(), 10U);
    EXPECT_EQ(tokenizer->decode(plain), "<|im_end|>");
  }
}

TEST(Tokenizer, SpecialIdsComeFromTheTemplate) {
  Json document = byte_level_json();
  document["added_tokens"] = Json::array({added_token(300, "<bos>"), added_token(301, "<eos>")});
  document["post_processor"] = {
      {"type", "Sequence"},
      {"processors", Json::array({{{"type", "ByteLevel"}, {"trim_offsets", false}},
                                  template_json(Json::array({special_item("<bos>"), kTextItem}), "<bos>", 300)})}};
  const auto tokenizer = tokenizer_of(document, {{"bos_token", "<bos>"}, {"add_bos_token", false}});
  EXPECT_EQ(tokenizer->encode("a"), Ids{'a'});
  EXPECT_EQ(tokenizer->encode("a", {.add_special = true}), (Ids{300, 'a'}));
  EXPECT_EQ(tokenizer->encode("", {.add_special = true}), Ids{300});
  EXPECT_TRUE(tokenizer->adds_bos());
  // A text that begins with BOS does not get another; one that only looks so to a reader does.
  EXPECT_EQ(tokenizer->encode("<bos>a", {.add_special = true}), (Ids{300, 'a'}));
  EXPECT_EQ(tokenizer->encode("<bos>", {.add_special = true, .match_added_tokens = false}).size(), 6U);
}

TEST(Tokenizer, WithoutATemplateTheConfigSwitchesDecide) {
  Json document = byte_level_json();
  document["added_tokens"] = Json::array({added_token(300, "<bos>"), added_token(301, "<eos>")});
  const Json tokens = {{"bos_token", {{"content", "<bos>"}, {"special", true}}}, {"eos_token", "<eos>"}};
  EXPECT_EQ(tokenizer_of(document, tokens)->encode("a", {.add_special = true}), Ids{'a'});
  EXPECT_FALSE(tokenizer_of(document, tokens)->adds_bos());
  Json both = tokens;
  both["add_bos_token"] = true;
  both["add_eos_token"] = true;
  EXPECT_EQ(tokenizer_of(document, both)->encode("a", {.add_special = true}), (Ids{300, 'a', 301}));
  EXPECT_EQ(tokenizer_of(document, both)->bos_id(), 300);
  EXPECT_EQ(tokenizer_of(document, both)->stop_ids(), Ids{301});
}

TEST(Tokenizer, ConfigTokensAreStringsObjectsOrNull) {
  Json document = byte_level_json();
  document["added_tokens"] = Json::array({added_token(300, "<a>")});
  const auto tokenizer =
      tokenizer_of(document, {{"bos_token", nullptr}, {"eos_token", {{"content", "<a>"}}}, {"pad_token", "<none>"}});
  EXPECT_EQ(tokenizer->bos_id(), std::nullopt);
  EXPECT_EQ(tokenizer->eos_id(), 300);
  EXPECT_EQ(tokenizer->pad_id(), std::nullopt);
  EXPECT_EQ(tokenizer_of(document)->stop_ids(), Ids{});
  EXPECT_THROW(tokenizer_of(document, {{"eos_token", "<none>"}}), Error);
  EXPECT_THROW(tokenizer_of(document, {{"eos_token", 5}}), Error);
  EXPECT_THROW(tokenizer_of(document, {{"add_bos_token", true}}), Error);
}

class TokenizerFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "drafthorse_tokenizer_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }
  std::string template_of(const std::string& name = "default") {
    const auto tokenizer = Tokenizer::load(folder_);
    const ChatTemplate* found = tokenizer->chat_template(name);
    return found == nullptr ? "(none)" : found->text;
  }
  std::string folder_;
};

TEST_F(TokenizerFolder, TheChatTemplateComesFromTheMostSpecificFile) {
  write("tokenizer.json", byte_level_json().dump());
  EXPECT_EQ(template_of(), "(none)");
  write("tokenizer_config.json", R"({"chat_template": "from config"})");
  EXPECT_EQ(template_of(), "from config");
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]})");
  EXPECT_EQ(template_of(), "d");
  EXPECT_EQ(template_of("tool_use"), "t");
  write("chat_template.json", R"({"chat_template": "from json"})");
  EXPECT_EQ(template_of(), "from json");
  EXPECT_EQ(template_of("tool_use"), "(none)");
  write("chat_template.jinja", "from jinja\n");
  EXPECT_EQ(template_of(), "from jinja\n");
}

TEST_F(TokenizerFolder, AMissingFileIsAnErrorWithAHint) {
  EXPECT_THROW(Tokenizer::load(folder_), Error);
  write("tokenizer.model", "x");
  try {
    Tokenizer::load(folder_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("tokenizer.model alone is not supported"), std::string::npos);
  }
}

const char* const kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Json qwen_like_json() {
  Json document = byte_level_json({{"A", "A"}, {"AA", "AA"}, {"AAAA", "AAAA"}, {"\u0120", "\u0120"}});
  document["normalizer"] = {{"type", "NFC"}};
  const Json split = {
      {"type", "Split"}, {"pattern", {{"Regex", kQwenPattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  document["pre_tokenizer"] = {{"type", "Sequence"},
                               {"pretokenizers", Json::array({split, document["pre_tokenizer"]})}};
  return document;
}

/// Runs `body` on a thread with 256 KiB of stack.
template <typename Body>
void on_a_small_stack(Body body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    (*static_cast<Body*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &body), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Tokenizer, LongRunsOfOneCharacterNeedLittleStackAndReturn) {
  const auto byte_level = tokenizer_of(qwen_like_json());
  const auto sentencepiece = tokenizer_of(llama2_json());
  for (const std::string unit :
       {"A", "\n", " ", "7", "\u4E2D", "\u0301", "'", "\u0301\u0316", " \n", "a ", "\xF0\x9F\x98\x80"}) {
    std::string text;
    for (int i = 0; i < 200000; ++i) text += unit;
    Ids ids;
    Ids more;
    on_a_small_stack([&] {
      ids = byte_level->encode(text);
      more = sentencepiece->encode(text);
    });
    ASSERT_FALSE(ids.empty());
    EXPECT_TRUE(sentencepiece->decode(more) == text) << unit;
    const bool reordered = unit == "\u0301\u0316";  // by NFC
    EXPECT_EQ(byte_level->decode(ids) == text, !reordered) << unit;
  }
  EXPECT_EQ(byte_level->encode(std::string(200000, 'A')), Ids(25000, 258));
}

TEST(Tokenizer, ThreadsShareOneTokenizer) {
  const auto tokenizer = tokenizer_of(qwen_like_json());
  const std::string text = "Hello AAAAAAA it's 12 o'clock\r\n\u4E2D\u6587  <x>";
  const Ids expected = tokenizer->encode(text);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) count += tokenizer->encode(text) == expected ? 0 : 1;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace drafthorse
