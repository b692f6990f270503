#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"

namespace drafthorse {

/// The `normalizer` of tokenizer.json: what happens to text before it is split. Immutable; shared by threads.
class Normalizer {
 public:
  /// `component` is the object of that key, or null for no normalisation. Takes NFC, NFD, NFKC, NFKD, Replace with
  /// a string pattern, Prepend, and Sequence of these; throws Error naming any other type or option.
  Normalizer(const Json& component, const std::string& source);

  /// `text` must be valid UTF-8; so is the result. Empty text stays empty.
  std::string normalize(std::string_view text) const;
  /// True when normalize() returns its argument.
  bool is_identity() const { return steps_.empty(); }

 private:
  struct UnicodeForm {
    bool compose;
    bool compatibility;
  };
  struct Replace {
    std::string pattern;
    std::string content;
  };
  struct Prepend {
    std::string text;
  };
  using Step = std::variant<UnicodeForm, Replace, Prepend>;

  void add(const Json& component, const std::string& source, const std::string& where);

  std::vector<Step> steps_;
};

}  // namespace drafthorse
