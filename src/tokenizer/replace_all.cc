#include "tokenizer/replace_all.h"

namespace drafthorse {

std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (;;) {
    const std::size_t hit = text.find(pattern);
    out += text.substr(0, hit);
    if (hit == std::string_view::npos) return out;
    out += content;
    text.remove_prefix(hit + pattern.size());
  }
}

}  // namespace drafthorse
