#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace drafthorse {

/// Half-open byte range of a text.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool empty() const { return begin == end; }
};

/// A compiled pattern (PCRE2, just-in-time compiled where the machine allows). Immutable; shared by threads. Character
/// classes are those of the Unicode version PCRE2 was built with; another version can differ on newly assigned code
/// points only.
class Regex {
 public:
  /// `pattern` as tokenizer.json spells it (see regex_dialect.h), or PCRE2's own when `verbatim`. Throws Error starting
  /// with `where` when it does not compile.
  Regex(std::string_view pattern, const std::string& where, bool verbatim = false);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

 private:
  friend class RegexMatcher;
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

/// What one thread needs to run one Regex. Uses little of the caller's stack, however long the text; work per match is
/// bounded.
class RegexMatcher {
 public:
  /// `regex` must outlive this.
  explicit RegexMatcher(const Regex& regex);
  ~RegexMatcher();
  RegexMatcher(RegexMatcher&&) noexcept;
  RegexMatcher& operator=(RegexMatcher&&) noexcept;

  /// The first match at or behind byte `from`; look-behind sees the text before it. `text` must be valid UTF-8 and
  /// `from` a code point boundary. Throws Error when the pattern needs more steps or memory than allowed for this
  /// length.
  std::optional<ByteRange> search(std::string_view text, std::size_t from);
  /// Calls visit(ByteRange) for successive matches; an empty match right behind the previous match is skipped.
  template <typename Visit>
  void for_each_match(std::string_view text, const Visit& visit) {
    std::size_t from = 0;
    std::optional<std::size_t> last_end;
    while (from <= text.size()) {
      const auto match = search(text, from);
      if (!match) return;
      if (match->empty() && match->end == last_end) {
        if (from >= text.size()) return;
        do ++from;
        while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80);
        continue;
      }
      visit(*match);
      from = match->end;
      last_end = match->end;
    }
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace drafthorse
