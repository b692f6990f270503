#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace drafthorse {

/// The byte-level alphabet (Radford et al. 2019, GPT-2): every byte has one printable code point. The printable bytes
/// of Latin-1 (0x21-0x7E, 0xA1-0xAC, 0xAE-0xFF) stand for themselves; the other 68, in ascending order, are U+0100
/// onwards.
std::uint32_t code_point_of_byte(std::uint8_t byte);

/// The byte a code point of the alphabet stands for; nullopt for any other code point.
std::optional<std::uint8_t> byte_of_code_point(std::uint32_t code_point);

/// `bytes` written in the alphabet, as UTF-8.
std::string to_byte_alphabet(std::string_view bytes);

/// The bytes a token spells, or nullopt when one of its characters is outside the alphabet. `text` is valid UTF-8.
std::optional<std::string> from_byte_alphabet(std::string_view text);

/// The byte named by a token of the exact form `<0xNN>` (two upper-case hexadecimal digits).
std::optional<std::uint8_t> byte_of_fallback_token(std::string_view token);

/// The inverse: "<0x0A>" for 10.
std::string fallback_token_of_byte(std::uint8_t byte);

}  // namespace drafthorse
