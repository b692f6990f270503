#include "tokenizer/utf8.h"

#include <cstring>

namespace drafthorse {

Utf8Unit utf8_unit(std::string_view text, std::size_t position) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(position);
  if (lead < 0x80) return {Utf8Unit::kComplete, 1, lead};
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Unit::kInvalid, 1, 0};

  const std::uint8_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range rules out overlong forms, surrogates and values above U+10FFFF.
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  std::uint32_t code_point = lead & (0x7F >> length);
  for (std::uint8_t i = 1; i < length; ++i) {
    if (position + i >= text.size()) return {Utf8Unit::kTruncated, i, 0};
    const std::uint8_t next = byte(position + i);
    if (next < low || next > high) return {Utf8Unit::kInvalid, i, 0};
    code_point = code_point << 6 | (next & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Unit::kComplete, length, code_point};
}

std::size_t find_invalid_utf8(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    if (position + 8 <= text.size()) {
      std::uint64_t word;
      std::memcpy(&word, text.data() + position, 8);
      if ((word & 0x8080808080808080U) == 0) {
        position += 8;
        continue;
      }
    }
    const Utf8Unit unit = utf8_unit(text, position);
    if (unit.kind != Utf8Unit::kComplete) return position;
    position += unit.length;
  }
  return std::string_view::npos;
}

std::uint32_t next_code_point(std::string_view text, std::size_t& position) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[position + i]); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) {
    position += 1;
    return lead;
  }
  std::uint32_t code_point;
  if (lead < 0xE0) {
    code_point = (lead & 0x1F) << 6 | (byte(1) & 0x3FU);
    position += 2;
  } else if (lead < 0xF0) {
    code_point = (lead & 0x0F) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU);
    position += 3;
  } else {
    code_point = (lead & 0x07) << 18 | (byte(1) & 0x3FU) << 12 | (byte(2) & 0x3FU) << 6 | (byte(3) & 0x3FU);
    position += 4;
  }
  return code_point;
}

void append_utf8(std::string& text, std::uint32_t code_point) {
  const auto put = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  std::size_t position = 0;
  while (position < bytes.size()) {
    const Utf8Unit unit = utf8_unit(bytes, position);
    text += unit.kind == Utf8Unit::kComplete ? bytes.substr(position, unit.length) : kReplacementCharacter;
    position += unit.length;
  }
  return text;
}

}  // namespace drafthorse
