#include "tokenizer/regex_dialect.h"

#include "base/error.h"

namespace drafthorse {
namespace {

constexpr std::string_view kWordClass = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

/// One pass over a pattern, copying it piece by piece.
class Translation {
 public:
  Translation(std::string_view pattern, const std::string& where) : pattern_(pattern), where_(where) {}

  std::string run() {
    while (position_ < pattern_.size()) {
      if (pattern_[position_] == '\\') {
        escape();
      } else if (in_class_) {
        class_character();
      } else {
        plain_character();
      }
    }
    return std::move(out_);
  }

 private:
  bool ahead(std::string_view text) const { return pattern_.substr(position_).starts_with(text); }
  void copy(std::size_t count) {
    out_ += pattern_.substr(position_, count);
    position_ += count;
  }
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(where_ + ": " + std::string(what) + " at byte " + std::to_string(position_) +
                " of the pattern is not supported");
  }

  void escape() {
    if (position_ + 1 >= pattern_.size()) refuse("a trailing backslash");
    const char letter = pattern_[position_ + 1];
    class_is_empty_ = false;
    switch (letter) {
      case 's':
        return replace(R"(\p{White_Space})");
      case 'S':
        return replace(R"(\P{White_Space})");
      case 'w':
        return replace(in_class_ ? std::string(kWordClass) : "[" + std::string(kWordClass) + "]");
      case 'W':
        if (in_class_) refuse("\\W inside a class");
        return replace("[^" + std::string(kWordClass) + "]");
      case 'h':
      case 'H':
      case 'b':
      case 'B':
      case 'g':
      case 'k':
      case 'C':
      case 'M':
      case 'Q':
      case 'E':
      case 'y':
      case 'Y':
      case 'Z':
      case 'c':
      case 'o':
      case 'N':
      case 'O':
      case 'v':
        refuse(std::string("the escape \\") + letter);
      default:
        return copy(2);
    }
  }

  void replace(const std::string& text) {
    out_ += text;
    position_ += 2;
  }

  void class_character() {
    if (ahead("&&")) refuse("the class intersection &&");
    if (pattern_[position_] == '[') {
      // POSIX names mean the same in both; any other bracket opens a nested class in Ruby syntax only.
      if (!ahead("[:")) refuse("a class inside a class");
      const auto end = pattern_.find(":]", position_);
      if (end == std::string_view::npos) refuse("a class inside a class");
      return copy(end + 2 - position_);
    }
    if (pattern_[position_] == ']' && !class_is_empty_) in_class_ = false;
    class_is_empty_ = false;
    copy(1);
  }

  void plain_character() {
    if (pattern_[position_] == '[') {
      in_class_ = true;
      class_is_empty_ = true;
      return copy(ahead("[^") ? 2 : 1);
    }
    if (ahead("(*")) refuse("the verb (*");
    if (ahead("(?")) check_group();
    if (pattern_[position_] == '{') check_interval();
    copy(1);
  }

  void check_group() const {
    const std::string_view rest = pattern_.substr(position_ + 2);
    for (const std::string_view known : {":", "=", "!", ">", "<=", "<!"}) {
      if (rest.starts_with(known)) return;
    }
    const std::size_t end = rest.find_first_not_of("i-");
    if (end == 0 || end == std::string_view::npos || (rest[end] != ')' && rest[end] != ':')) {
      refuse("the group (?" + std::string(rest.substr(0, 1)));
    }
  }

  void check_interval() const {
    if (ahead("{,")) refuse("the interval {,");
    const auto end = pattern_.find_first_not_of("0123456789,", position_ + 1);
    if (end != std::string_view::npos && pattern_.substr(end).starts_with("}+")) refuse("the quantifier }+");
  }

  std::string_view pattern_;
  const std::string& where_;
  std::string out_;
  std::size_t position_ = 0;
  bool in_class_ = false;
  bool class_is_empty_ = false;
};

}  // namespace

std::string to_pcre2_syntax(std::string_view pattern, const std::string& where) {
  return Translation(pattern, where).run();
}

}  // namespace drafthorse
