#pragma once

#include <cstdint>
#include <string>

#include "tokenizer/tokenizer.h"

namespace drafthorse {

/// Text from ids one at a time, so that no character reaches a reader in halves.
///
/// What push() and finish() return, joined, is replace_invalid_utf8(tokenizer.decode(all ids, skip_special)): valid
/// UTF-8, each maximal invalid subpart one U+FFFD. This is one policy for both kinds of tokenizer. (The Hugging Face
/// decoder turns a run of
/// `<0xNN>` tokens that is not valid as a whole into one U+FFFD per byte, also its valid characters; that needs the
/// whole run and cannot stream.)
class StreamDecoder {
 public:
  /// `tokenizer` must outlive this.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = false);

  /// The text that `id` completes; at most three bytes are held back, and only while they may still begin a character.
  std::string push(std::int32_t id);
  /// The rest: one U+FFFD if the ids end inside a character. The decoder is then as new.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  LeadingStrip strip_;
  std::string held_;  // an incomplete character
};

}  // namespace drafthorse
