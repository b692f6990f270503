#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tokenizer/regex.h"

namespace drafthorse {

/// The `pre_tokenizer` of tokenizer.json: cuts normalised text into the pieces BPE works on. Immutable; shared by
/// threads.
class PreTokenizer {
 public:
  /// A piece of the text given to split(); half open, never empty.
  struct Piece {
    std::uint32_t begin;
    std::uint32_t end;
  };
  /// Texts given to split() are at most this long.
  static constexpr std::size_t kTextLimit = std::size_t{1} << 30;

  /// `component` is the object of that key, or null for no cutting. Takes Split (String or Regex; all five behaviours),
  /// ByteLevel (last only) and Sequence of these; throws Error naming any other type or option.
  PreTokenizer(const Json& component, const std::string& source);

  /// True when BPE runs over the bytes of a piece written in the byte-level alphabet (byte_alphabet.h).
  bool byte_level() const { return byte_level_; }

  /// A match, or the text between two matches.
  struct Section {
    ByteRange range;
    bool matched;
  };

  /// The working memory of one thread; reuse it across calls of split().
  class Scratch {
   public:
    explicit Scratch(const PreTokenizer& owner);

   private:
    friend class PreTokenizer;
    std::vector<RegexMatcher> matchers_;  // of the regex steps, in order
    std::vector<Piece> input_;
    std::vector<Section> sections_;
    std::vector<ByteRange> ranges_;
  };

  /// The pieces of valid UTF-8 `text` in order. Throws Error when a pattern gives up (see RegexMatcher).
  void split(std::string_view text, Scratch& scratch, std::vector<Piece>& pieces) const;

 private:
  enum class Behavior : std::uint8_t { kRemoved, kIsolated, kContiguous, kMergedWithPrevious, kMergedWithNext };
  struct Step {
    std::unique_ptr<const Regex> regex;  // or the literal
    std::string literal;
    Behavior behavior = Behavior::kIsolated;
    bool invert = false;
  };

  void add(const Json& component, const std::string& source, const std::string& where);
  void add_split(const struct Component& component);
  void add_byte_level(const struct Component& component);
  static void merge_sections(Behavior behavior, const std::vector<Section>& sections, std::vector<ByteRange>& out);

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

}  // namespace drafthorse
