#pragma once

#include <string>
#include <string_view>

namespace drafthorse {

/// `text` with every occurrence of `pattern` (not empty; left to right, not overlapping) replaced by `content`.
std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content);

}  // namespace drafthorse
