#include "tokenizer/stream_decoder.h"

#include <utility>

#include "tokenizer/utf8.h"

namespace drafthorse {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : tokenizer_(tokenizer), skip_special_(skip_special), strip_(tokenizer.leading_strip()) {}

std::string StreamDecoder::push(std::int32_t id) {
  if (skip_special_ && tokenizer_.is_special(id)) return {};
  std::string bytes = std::exchange(held_, {});
  bytes += strip_.apply(tokenizer_.token_bytes(id));

  std::string text;
  for (std::size_t position = 0; position < bytes.size();) {
    const Utf8Unit unit = utf8_unit(bytes, position);
    if (unit.kind == Utf8Unit::kTruncated) {
      held_ = bytes.substr(position);
      break;
    }
    text += unit.kind == Utf8Unit::kComplete ? std::string_view(bytes).substr(position, unit.length)
                                             : kReplacementCharacter;
    position += unit.length;
  }
  return text;
}

std::string StreamDecoder::finish() {
  strip_ = tokenizer_.leading_strip();
  return std::exchange(held_, {}).empty() ? std::string() : std::string(kReplacementCharacter);
}

}  // namespace drafthorse
