#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace drafthorse {

/// What stands at one place of a byte string read as UTF-8 (Unicode standard, table 3-7).
struct Utf8Unit {
  enum Kind : std::uint8_t {
    kComplete,   ///< a whole code point
    kInvalid,    ///< a maximal subpart that no further byte can complete: the unit one U+FFFD stands for
    kTruncated,  ///< the text ends inside a code point that is well formed so far
  };
  Kind kind = kComplete;
  std::uint8_t length = 0;       ///< bytes, 1 to 4 (kTruncated: 1 to 3)
  std::uint32_t code_point = 0;  ///< of kComplete
};

/// The unit at byte `position`, which must be below text.size().
Utf8Unit utf8_unit(std::string_view text, std::size_t position);

/// Offset of the first byte that is not part of a complete code point, or npos when `text` is valid UTF-8.
std::size_t find_invalid_utf8(std::string_view text);

/// The code point at `position` of valid UTF-8; moves `position` behind it.
std::uint32_t next_code_point(std::string_view text, std::size_t& position);

void append_utf8(std::string& text, std::uint32_t code_point);

/// `bytes` as valid UTF-8: each maximal invalid subpart, and a truncated tail, becomes one U+FFFD.
std::string replace_invalid_utf8(std::string_view bytes);

/// U+FFFD in UTF-8.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace drafthorse
