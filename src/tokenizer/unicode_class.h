#pragma once

#include <cstdint>

namespace drafthorse {

/// Unicode property White_Space.
bool is_white_space(std::uint32_t code_point);

/// A word character in the sense of UTS #18, annex C: Alphabetic, Mark, Decimal_Number, Connector_Punctuation,
/// Join_Control.
bool is_word_character(std::uint32_t code_point);

}  // namespace drafthorse
