#include "tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/error.h"
#include "tokenizer/byte_alphabet.h"

namespace drafthorse {
namespace {

/// The definition, word for word: join the leftmost pair of lowest rank until there is none.
std::vector<std::string> merge_slowly(std::vector<std::string> symbols, const MergeList& merges) {
  for (;;) {
    std::size_t best_rank = merges.size();
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        if (merges.left(rank) == symbols[i] && merges.right(rank) == symbols[i + 1]) {
          best_rank = rank;
          best = i;
        }
      }
    }
    if (best_rank == merges.size()) return symbols;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

/// A vocabulary of the letters a-d and random merges of tokens already there.
struct RandomVocabulary {
  TokenTable tokens;
  MergeList merges;
  explicit RandomVocabulary(unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::string> known = {"a", "b", "c", "d"};
    std::set<std::string> pairs;
    for (std::size_t i = 0; i < known.size(); ++i) tokens.add(known[i], static_cast<std::int32_t>(i));
    while (merges.size() < 24) {
      const std::string left = known[random() % known.size()];
      const std::string right = known[random() % known.size()];
      if (left.size() + right.size() > 9 || !pairs.insert(left + " " + right).second) continue;
      merges.add(left, right);
      if (tokens.add(left + right, tokens.id_end()) == TokenTable::Added::kYes) known.push_back(left + right);
    }
  }
};

std::vector<std::int32_t> encode(const Bpe& bpe, std::string_view text, bool allow_control = true) {
  Bpe::Scratch scratch;
  std::vector<std::int32_t> ids;
  bpe.encode(text, allow_control, scratch, ids);
  return ids;
}

TEST(Bpe, EqualsTheDefinitionForShortAndLongPieces) {
  std::mt19937 random(1);
  std::size_t longest = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const RandomVocabulary vocabulary(seed);
    const Bpe bpe(vocabulary.tokens, vocabulary.merges, {}, {}, "f");
    for (int round = 0; round < 40; ++round) {
      std::string text(1 + random() % (round % 4 == 0 ? 150 : 40), 'a');
      const unsigned letters = 1 + random() % 4;
      std::vector<std::string> symbols;
      for (char& letter : text) {
        letter = static_cast<char>('a' + random() % letters);
        symbols.emplace_back(1, letter);
      }
      std::vector<std::int32_t> expected;
      for (const std::string& token : merge_slowly(symbols, vocabulary.merges)) {
        expected.push_back(*vocabulary.tokens.find(token));
      }
      ASSERT_EQ(encode(bpe, text), expected) << text << " seed " << seed;
      longest = std::max(longest, expected.size());
    }
  }
  EXPECT_GT(longest, 40U);
}

struct Letters {
  TokenTable tokens;
  MergeList merges;
  explicit Letters(const std::vector<std::string>& contents) {
    for (const std::string& content : contents) tokens.add(content, tokens.id_end());
  }
};

TEST(Bpe, ACharacterOutsideTheVocabularyIsUnkOrNothing) {
  Letters v({"<unk>", "a", "b", "ab"});
  v.merges.add("a", "b");
  BpeOptions options;
  EXPECT_EQ(encode(Bpe(v.tokens, v.merges, options, {}, "f"), "axb"), (std::vector<std::int32_t>{3}));
  options.unk = 0;
  EXPECT_EQ(encode(Bpe(v.tokens, v.merges, options, {}, "f"), "axyb"), (std::vector<std::int32_t>{1, 0, 0, 2}));
  options.fuse_unk = true;
  EXPECT_EQ(encode(Bpe(v.tokens, v.merges, options, {}, "f"), "axyb\u20ACx"), (std::vector<std::int32_t>{1, 0, 2, 0}));
  EXPECT_EQ(encode(Bpe(v.tokens, v.merges, options, {}, "f"), "xab"), (std::vector<std::int32_t>{0, 3}));
}

TEST(Bpe, UnkAndFallbackBytesTakePartInMerging) {
  Letters v({"<unk>", "a", "<unk>a", "<0xC3>", "<0xA9>", "<0xC3><0xA9>"});
  v.merges.add("<unk>", "a");
  v.merges.add("<0xC3>", "<0xA9>");
  BpeOptions options;
  options.unk = 0;
  options.byte_fallback = true;
  const Bpe bpe(v.tokens, v.merges, options, {}, "f");
  EXPECT_EQ(encode(bpe, "xaxa"), (std::vector<std::int32_t>{2, 2}));
  EXPECT_EQ(encode(bpe, "a\u00E9x"), (std::vector<std::int32_t>{1, 5, 0}));
}

TEST(Bpe, FallbackNeedsAllBytesOfACharacter) {
  Letters v({"<unk>", "<0xC3>", "<0xA9>", "\xF0\x9F\x98\x80"});
  BpeOptions options;
  options.unk = 0;
  options.byte_fallback = true;
  const Bpe bpe(v.tokens, v.merges, options, {}, "f");
  EXPECT_EQ(encode(bpe, "\u00E9\u00E8\xF0\x9F\x98\x80"), (std::vector<std::int32_t>{1, 2, 0, 3}));
}

TEST(Bpe, IgnoreMergesTakesAWholePieceThatIsAToken) {
  Letters v({"a", "b", "c", "ab", "bc", "abc"});
  v.merges.add("b", "c");
  v.merges.add("a", "b");
  BpeOptions options;
  EXPECT_EQ(encode(Bpe(v.tokens, v.merges, options, {}, "f"), "abc"), (std::vector<std::int32_t>{0, 4}));
  options.ignore_merges = true;
  EXPECT_EQ(encode(Bpe(v.tokens, v.merges, options, {}, "f"), "abc"), (std::vector<std::int32_t>{5}));
  EXPECT_EQ(encode(Bpe(v.tokens, v.merges, options, {}, "f"), "abca"), (std::vector<std::int32_t>{0, 4, 0}));
}

TEST(Bpe, OfAPairListedTwiceTheLaterRankCounts) {
  Letters v({"a", "b", "c", "ab", "bc"});
  v.merges.add("a", "b");
  v.merges.add("b", "c");
  v.merges.add("a", "b");
  EXPECT_EQ(encode(Bpe(v.tokens, v.merges, {}, {}, "f"), "abc"), (std::vector<std::int32_t>{0, 4}));
}

TEST(Bpe, AControlTokenFallsBackToItsPartsWhenNotAllowed) {
  Letters v({"a", "b", "c", "ab", "abc"});
  v.merges.add("a", "b");
  v.merges.add("ab", "c");
  BpeOptions options;
  for (const bool ignore_merges : {false, true}) {
    options.ignore_merges = ignore_merges;
    const Bpe bpe(v.tokens, v.merges, options, {4}, "f");
    EXPECT_EQ(encode(bpe, "abc", true), (std::vector<std::int32_t>{4}));
    EXPECT_EQ(encode(bpe, "abc", false), (std::vector<std::int32_t>{3, 2}));
    EXPECT_EQ(encode(Bpe(v.tokens, v.merges, options, {4, 3}, "f"), "cabcab", false),
              (std::vector<std::int32_t>{2, 0, 1, 2, 0, 1}));
  }
}

TEST(Bpe, EveryPartAndResultOfAMergeMustBeAToken) {
  Letters v({"a", "b", "ab"});
  v.merges.add("a", "b");
  v.merges.add("b", "a");
  try {
    Bpe(v.tokens, v.merges, {}, {}, "f");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), R"(f: model.merges[1] = ["b", "a"]: "ba" is not in model.vocab)");
  }
}

TEST(TokenTable, KeepsContentsAndIdsApart) {
  TokenTable table;
  EXPECT_EQ(table.add("a", 5), TokenTable::Added::kYes);
  EXPECT_EQ(table.add("a", 6), TokenTable::Added::kContentKnown);
  EXPECT_EQ(table.add("b", 5), TokenTable::Added::kIdKnown);
  EXPECT_EQ(table.add("", 0), TokenTable::Added::kYes);
  EXPECT_EQ(table.add(std::string_view("\0", 1), 1), TokenTable::Added::kYes);
  EXPECT_EQ(table.size(), 3U);
  EXPECT_EQ(table.id_end(), 6);
  EXPECT_FALSE(table.has(3));
  EXPECT_FALSE(table.has(-1));
  EXPECT_FALSE(table.has(6));
  EXPECT_EQ(table.find(""), 0);
  EXPECT_EQ(table.find("b"), std::nullopt);
  EXPECT_EQ(TokenTable().find("a"), std::nullopt);
  for (std::int32_t id = 10; id < 50000; ++id) table.add("token " + std::to_string(id), id);
  for (std::int32_t id = 10; id < 50000; ++id) ASSERT_EQ(table.find("token " + std::to_string(id)), id);
  EXPECT_EQ(table.content(777), "token 777");
}

}  // namespace
}  // namespace drafthorse
