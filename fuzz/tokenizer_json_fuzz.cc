// Any bytes as a tokenizer.json: it loads or it is refused with an Error, and what loads keeps its promises.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace {

void require(bool promise) {
  if (!promise) std::abort();
}

void use(const drafthorse::Tokenizer& tokenizer, std::string_view text) {
  for (const bool match : {true, false}) {
    const auto ids = tokenizer.encode(text, {.add_special = match, .match_added_tokens = match});
    drafthorse::StreamDecoder stream(tokenizer);
    std::string streamed;
    for (const std::int32_t id : ids) {
      require(tokenizer.has_token(id));
      streamed += stream.push(id);
      require(drafthorse::find_invalid_utf8(streamed) == std::string::npos);
    }
    require(streamed + stream.finish() == drafthorse::replace_invalid_utf8(tokenizer.decode(ids)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto tokenizer = drafthorse::Tokenizer::from_json(text, "fuzz");
    for (const std::string_view sample :
         {"", "ab  a<s>\n 12'LL \u2581e\u0301\xF0\x9F\x98\x80", "<unk>aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}) {
      use(*tokenizer, sample);
    }
  } catch (const drafthorse::Error&) {
  }
  return 0;
}
