#include "tokenizer/byte_alphabet.h"

#include <array>

#include "tokenizer/utf8.h"

namespace drafthorse {
namespace {

constexpr std::uint32_t kAlphabetEnd = 0x144;  // one past U+0143, the character of byte 0xAD

constexpr bool stands_for_itself(std::uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

struct Alphabet {
  std::array<std::uint16_t, 256> code_points{};
  std::array<std::int16_t, kAlphabetEnd> bytes{};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (auto& byte : alphabet.bytes) byte = -1;
  std::uint16_t next = 0x100;
  for (std::uint16_t byte = 0; byte < 256; ++byte) {
    const std::uint16_t code_point = stands_for_itself(byte) ? byte : next++;
    alphabet.code_points[byte] = code_point;
    alphabet.bytes[code_point] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

}  // namespace

std::uint32_t code_point_of_byte(std::uint8_t byte) { return kAlphabet.code_points[byte]; }

std::optional<std::uint8_t> byte_of_code_point(std::uint32_t code_point) {
  if (code_point >= kAlphabetEnd || kAlphabet.bytes[code_point] < 0) return std::nullopt;
  return static_cast<std::uint8_t>(kAlphabet.bytes[code_point]);
}

std::string to_byte_alphabet(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) append_utf8(text, code_point_of_byte(static_cast<std::uint8_t>(byte)));
  return text;
}

std::optional<std::string> from_byte_alphabet(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t position = 0; position < text.size();) {
    const auto byte = byte_of_code_point(next_code_point(text, position));
    if (!byte) return std::nullopt;
    bytes.push_back(static_cast<char>(*byte));
  }
  return bytes;
}

std::optional<std::uint8_t> byte_of_fallback_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const auto high = kHexDigits.find(token[3]);
  const auto low = kHexDigits.find(token[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<std::uint8_t>(high << 4 | low);
}

std::string fallback_token_of_byte(std::uint8_t byte) {
  return {'<', '0', 'x', kHexDigits[byte >> 4], kHexDigits[byte & 15], '>'};
}

}  // namespace drafthorse
