#pragma once

#include <string>
#include <string_view>

namespace drafthorse {

/// Unicode normalisation (UAX #15, by the tables of the utf8proc library at hand) of valid UTF-8: NFC (compose), NFD,
/// and with `compatibility` NFKC, NFKD. Linear but for the sort of each run of combining marks, so a text of nothing
/// but marks is no trap.
std::string to_unicode_form(std::string_view text, bool compose, bool compatibility);

}  // namespace drafthorse
