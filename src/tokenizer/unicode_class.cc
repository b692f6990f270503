#include "tokenizer/unicode_class.h"

#include <utf8proc.h>

namespace drafthorse {

bool is_white_space(std::uint32_t code_point) {
  switch (code_point) {
    case 0x20:
    case 0x85:
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000:
      return true;
    default:
      return (code_point >= 0x09 && code_point <= 0x0D) || (code_point >= 0x2000 && code_point <= 0x200A);
  }
}

bool is_word_character(std::uint32_t code_point) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      break;
  }
  // Symbols that are Alphabetic (circled and squared Latin letters), and the two joiners.
  const auto within = [&](std::uint32_t first, std::uint32_t last) {
    return code_point >= first && code_point <= last;
  };
  return within(0x24B6, 0x24E9) || within(0x1F130, 0x1F149) || within(0x1F150, 0x1F169) || within(0x1F170, 0x1F189) ||
         within(0x200C, 0x200D);
}

}  // namespace drafthorse
