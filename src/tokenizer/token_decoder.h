#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace drafthorse {

/// The `decoder` of tokenizer.json: how a token's content becomes bytes of text. Works token by token (so text can
/// stream) but for a leading strip of the whole text. Immutable.
class TokenDecoder {
 public:
  /// Takes ByteLevel, Replace with a string pattern, ByteFallback, Fuse, Strip (of the whole text's start, so behind
  /// Fuse), and Sequence of these. Throws Error naming any other type, option or order.
  TokenDecoder(const Json& component, const std::string& source);

  /// The bytes a token stands for. `content` is valid UTF-8; the result need not be.
  std::string decode(std::string_view content) const;

  /// Removes from the start of a whole text up to strip_count() characters strip_character().
  int strip_count() const { return strip_count_; }
  char strip_character() const { return strip_character_; }

 private:
  struct Step {
    enum class Kind { kByteLevel, kReplace, kByteFallback } kind;
    std::string pattern;  // of kReplace
    std::string content;
  };

  void add(const Json& component, const std::string& source, const std::string& where);
  void add_strip(const struct Component& component);

  std::vector<Step> steps_;
  bool fused_ = false;
  int strip_count_ = 0;
  char strip_character_ = '\0';
};

/// The leading strip of one text that arrives in parts.
class LeadingStrip {
 public:
  explicit LeadingStrip(const TokenDecoder& decoder)
      : left_(decoder.strip_count()), character_(decoder.strip_character()) {}
  /// What is left of the next part.
  std::string_view apply(std::string_view part) {
    while (left_ > 0 && !part.empty()) {
      if (part.front() != character_) {
        left_ = 0;
      } else {
        part.remove_prefix(1);
        --left_;
      }
    }
    return part;
  }

 private:
  int left_;
  char character_;
};

}  // namespace drafthorse
