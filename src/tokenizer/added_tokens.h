#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace drafthorse {

/// One entry of `added_tokens`: a token found in the text by its content, before BPE.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool single_word = false;  ///< only where no word character touches it
  bool lstrip = false;       ///< swallows white space on its left
  bool rstrip = false;       ///< swallows white space on its right
  bool normalized = false;   ///< looked for in the normalised text, not in the raw text
  bool special = false;      ///< a control token: dropped by decoding with skip_special
};

/// Reads the `added_tokens` list (or null). Throws Error naming a bad entry: unknown key, id outside [0, 2^24), empty
/// content, content or id listed twice.
std::vector<AddedToken> read_added_tokens(const Json& list, const std::string& source);

/// Finds added tokens in a text: left to right, at each place the longest content that matches. Immutable.
class AddedTokenMatcher {
 public:
  AddedTokenMatcher() = default;
  /// `tokens` are looked for by their `content` (for the normalised kind: already normalised by the caller).
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  /// A part of a text: an added token, or (id -1) text between them. `text` of a token includes swallowed white space.
  struct Part {
    std::string_view text;
    std::int32_t id;
  };
  /// Appends the parts of valid UTF-8 `text` in order, without empty ones.
  void split(std::string_view text, std::vector<Part>& parts) const;

 private:
  /// The longest token that starts at `position`, or nullptr.
  const AddedToken* longest_at(std::string_view text, std::size_t position) const;

  std::vector<AddedToken> tokens_;                                            // sorted by content
  std::array<std::pair<std::uint32_t, std::uint32_t>, 256> by_first_byte_{};  // half-open ranges of tokens_
};

}  // namespace drafthorse
