#include "tokenizer/unicode_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "tokenizer/utf8.h"

namespace drafthorse {
namespace {

int combining_class(utf8proc_int32_t code_point) { return utf8proc_get_property(code_point)->combining_class; }

/// Below these no code point has a decomposition, combines with a neighbour, or is reordered.
bool is_plain(std::string_view text, bool compose, bool compatibility) {
  const std::uint32_t limit = compose && !compatibility ? 0x300 : 0x80;
  for (std::size_t position = 0; position < text.size();) {
    if (next_code_point(text, position) >= limit) return false;
  }
  return true;
}

/// Canonical ordering: each run of marks sorted by class, equal classes in place.
void order_marks(std::vector<utf8proc_int32_t>& points) {
  for (auto begin = points.begin(); begin != points.end();) {
    if (combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, points.end(), [](auto point) { return combining_class(point) == 0; });
    std::stable_sort(begin, end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

}  // namespace

std::string to_unicode_form(std::string_view text, bool compose, bool compatibility) {
  if (is_plain(text, compose, compatibility)) return std::string(text);
  const int stable = UTF8PROC_STABLE | (compatibility ? UTF8PROC_COMPAT : 0);

  // Decomposed one code point at a time: utf8proc's whole-string form sorts marks by insertion, quadratic in a run of
  // them.
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  for (std::size_t position = 0; position < text.size();) {
    const auto point = static_cast<utf8proc_int32_t>(next_code_point(text, position));
    std::array<utf8proc_int32_t, 32> parts{};  // the longest decomposition has 18
    int boundary = 0;
    const auto count = utf8proc_decompose_char(point, parts.data(), parts.size(),
                                               static_cast<utf8proc_option_t>(stable | UTF8PROC_DECOMPOSE), &boundary);
    DRAFTHORSE_CHECK(count >= 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()), "code point " << point);
    points.insert(points.end(), parts.begin(), parts.begin() + count);
  }
  order_marks(points);
  if (compose) {
    const auto count = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                                                static_cast<utf8proc_option_t>(stable | UTF8PROC_COMPOSE));
    DRAFTHORSE_CHECK(count >= 0 && count <= static_cast<utf8proc_ssize_t>(points.size()));
    points.resize(static_cast<std::size_t>(count));
  }

  std::string normalized;
  normalized.reserve(text.size());
  for (const auto point : points) append_utf8(normalized, static_cast<std::uint32_t>(point));
  return normalized;
}

}  // namespace drafthorse
