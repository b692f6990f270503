#include "tokenizer/token_decoder.h"

#include "base/error.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/component.h"
#include "tokenizer/replace_all.h"

namespace drafthorse {

TokenDecoder::TokenDecoder(const Json& component, const std::string& source) {
  if (component.is_null()) throw Error(source + ": decoder: missing or null: cannot tell how tokens become text");
  add(component, source, "decoder");
}

void TokenDecoder::add(const Json& json, const std::string& source, const std::string& where) {
  const Component component(json, source, where);
  const bool whole_text = component.type == "Sequence" || component.type == "Fuse" || component.type == "Strip";
  if (fused_ && !whole_text) component.fail(component.type + " behind Fuse is not supported");
  if (component.type == "Sequence") {
    component.allow({"decoders"});
    component.for_each("decoders", [&](const Json& item, const std::string& path) { add(item, source, path); });
  } else if (component.type == "ByteLevel") {
    component.allow({"add_prefix_space", "trim_offsets", "use_regex"});  // none of them has a bearing on decoding
    steps_.push_back({Step::Kind::kByteLevel, {}, {}});
  } else if (component.type == "Replace") {
    component.allow({"pattern", "content"});
    const ComponentPattern pattern = read_pattern(component);
    if (pattern.kind != ComponentPattern::Kind::kString) {
      component.fields.fail("pattern", "only {\"String\": text} is supported");
    }
    steps_.push_back({Step::Kind::kReplace, pattern.text, component.required_string("content")});
  } else if (component.type == "ByteFallback") {
    component.allow({});
    steps_.push_back({Step::Kind::kByteFallback, {}, {}});
  } else if (component.type == "Fuse") {
    component.allow({});
    fused_ = true;
  } else if (component.type == "Strip") {
    add_strip(component);
  } else {
    component.fail_type();
  }
}

void TokenDecoder::add_strip(const Component& component) {
  component.allow({"content", "start", "stop"});
  if (!fused_) component.fail("Strip before Fuse is not supported");
  if (strip_count_ != 0) component.fail("a second Strip is not supported");
  const std::string content = component.required_string("content");
  if (content.size() != 1) component.fields.fail("content", "must be one ASCII character");
  const auto start = component.required_integer("start");
  if (start < 0 || start > 1024) component.fields.fail("start", "must be from 0 to 1024");
  if (component.required_integer("stop") != 0) {
    component.fields.fail("stop", "must be 0: text that streams has no end to strip");
  }
  strip_count_ = static_cast<int>(start);
  strip_character_ = content[0];
}

std::string TokenDecoder::decode(std::string_view content) const {
  std::string text(content);
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Step::Kind::kByteLevel:
        // Added tokens are stored as plain text: what is not spelled in the alphabet is itself.
        if (auto bytes = from_byte_alphabet(text)) return *std::move(bytes);
        break;
      case Step::Kind::kReplace:
        text = replace_all(text, step.pattern, step.content);
        break;
      case Step::Kind::kByteFallback:
        if (const auto byte = byte_of_fallback_token(text)) return std::string(1, static_cast<char>(*byte));
        break;
    }
  }
  return text;
}

}  // namespace drafthorse
