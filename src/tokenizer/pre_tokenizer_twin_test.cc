// The published split patterns against a scanner written by hand from their meaning: two independent ways to the same
// pieces.
#include <gtest/gtest.h>
#include <utf8proc.h>

#include <random>
#include <string>
#include <vector>

#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/unicode_class.h"
#include "tokenizer/utf8.h"

namespace drafthorse {
namespace {

struct Family {
  const char* name;
  const char* pattern;
  int digits;       // a number is cut into runs of this many
  bool with_marks;  // marks belong to words
};

constexpr Family kFamilies[] = {
    {"qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     1, false},
    {"llama3",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     3, false},
    {"qwen35",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     1, true},
};

class Scanner {
 public:
  Scanner(const Family& family, const std::u32string& text) : family_(family), text_(text) {}

  /// Lengths of the pieces in code points.
  std::vector<std::size_t> run() {
    std::vector<std::size_t> lengths;
    for (std::size_t i = 0; i < text_.size(); i += lengths.back()) lengths.push_back(piece_at(i));
    return lengths;
  }

 private:
  static char category(char32_t c) { return utf8proc_category_string(static_cast<utf8proc_int32_t>(c))[0]; }
  bool space(std::size_t i) const { return i < text_.size() && is_white_space(text_[i]); }
  bool newline(std::size_t i) const { return i < text_.size() && (text_[i] == '\r' || text_[i] == '\n'); }
  bool letter(std::size_t i) const { return i < text_.size() && category(text_[i]) == 'L'; }
  bool number(std::size_t i) const { return i < text_.size() && category(text_[i]) == 'N'; }
  bool word(std::size_t i) const {
    return letter(i) || (family_.with_marks && i < text_.size() && category(text_[i]) == 'M');
  }
  bool other(std::size_t i) const { return i < text_.size() && !space(i) && !word(i) && !number(i); }
  template <typename Is>
  std::size_t run_end(std::size_t i, const Is& is) const {
    while (is(i)) ++i;
    return i;
  }

  std::size_t contraction_at(std::size_t i) const {
    if (text_[i] != '\'') return 0;
    const auto lower = [&](std::size_t at) -> char32_t {
      if (at >= text_.size()) return 0;
      if (text_[at] == 0x17F) return 's';  // the long s folds to s
      return text_[at] >= 'A' && text_[at] <= 'Z' ? text_[at] + 32 : text_[at];
    };
    const char32_t a = lower(i + 1);
    const char32_t b = lower(i + 2);
    if (a == 's' || a == 't') return 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return 3;
    return a == 'm' || a == 'd' ? 2 : 0;
  }

  std::size_t piece_at(std::size_t i) const {
    if (const std::size_t length = contraction_at(i)) return length;
    const bool prefix = !newline(i) && !letter(i) && !number(i) && word(i + 1);
    if (const std::size_t start = i + (prefix ? 1 : 0); word(start)) {
      return run_end(start, [&](std::size_t at) { return word(at); }) - i;
    }
    if (number(i)) {
      std::size_t end = i;
      while (number(end) && end - i < static_cast<std::size_t>(family_.digits)) ++end;
      return end - i;
    }
    if (const std::size_t start = i + (text_[i] == ' ' && other(i + 1) ? 1 : 0); other(start)) {
      const std::size_t end = run_end(start, [&](std::size_t at) { return other(at); });
      return run_end(end, [&](std::size_t at) { return newline(at); }) - i;
    }
    const std::size_t end = run_end(i, [&](std::size_t at) { return space(at); });
    for (std::size_t last = end; last > i; --last) {
      if (newline(last - 1)) return last - i;
    }
    if (end == text_.size() || end - i == 1) return end - i;
    return end - i - 1;
  }

  const Family& family_;
  const std::u32string& text_;
};

/// Strings that meet many rules: characters drawn from classes, in short runs.
std::u32string random_text(std::mt19937& random) {
  static const std::vector<std::u32string> kClasses = {U"abzXY\u00E9\u00DF\u0416\u4E2D\u0E01\u05D0\u01C5\u02B0\u017F",
                                                       U"\u0301\u0300\u093F\u0E31\u20DD\uFE0F",
                                                       U"019\u0663\u2167\u00BD\u2460",
                                                       U"    ",
                                                       U"\t\u00A0\u2003\u3000\u2028\u2029\u0085\u000B\u180E",
                                                       U"\r\n",
                                                       U".,!?-_(){}[]<>=+*/\\\"#@$%^&|~`:;",
                                                       U"'",
                                                       U"stmdrevlSTMDREVL",
                                                       U"\U0001F600\U0001F468\u200D\u2764\u20AC\u0000\u0007"};
  std::u32string text;
  const std::size_t runs = random() % 14;
  for (std::size_t run = 0; run < runs; ++run) {
    const std::u32string& characters = kClasses[random() % kClasses.size()];
    const std::size_t length = 1 + random() % (random() % 4 == 0 ? 6 : 2);
    for (std::size_t i = 0; i < length; ++i) text += characters[random() % characters.size()];
  }
  return text;
}

class SplitPattern : public testing::TestWithParam<Family> {};

TEST_P(SplitPattern, CutsAsTheHandWrittenScannerDoes) {
  const Family& family = GetParam();
  const Json component = {
      {"type", "Split"}, {"pattern", {{"Regex", family.pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  const PreTokenizer pre_tokenizer(component, "f");
  PreTokenizer::Scratch scratch(pre_tokenizer);
  std::vector<PreTokenizer::Piece> pieces;
  std::mt19937 random(20240607);
  std::size_t cuts = 0;
  for (int round = 0; round < 40000; ++round) {
    const std::u32string points = random_text(random);
    std::string text;
    for (const char32_t point : points) append_utf8(text, point);
    pre_tokenizer.split(text, scratch, pieces);

    std::vector<std::size_t> lengths;
    std::size_t covered = 0;
    for (const auto& piece : pieces) {
      ASSERT_EQ(piece.begin, covered) << "a gap in " << text;
      covered = piece.end;
      std::size_t length = 0;
      for (std::size_t at = piece.begin; at < piece.end; ++length) next_code_point(text, at);
      lengths.push_back(length);
    }
    ASSERT_EQ(lengths, Scanner(family, points).run()) << text;
    cuts += lengths.size();
  }
  EXPECT_GT(cuts, 150000U);
}

INSTANTIATE_TEST_SUITE_P(Families, SplitPattern, testing::ValuesIn(kFamilies),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace drafthorse
