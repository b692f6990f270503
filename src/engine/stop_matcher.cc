#include "engine/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace drafthorse {

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (std::string& text : stops) {
    DRAFTHORSE_CHECK(!text.empty(), "an empty stop string");
    Stop stop{std::move(text), {}, 0};
    stop.border.assign(stop.text.size() + 1, 0);
    for (std::size_t i = 1, k = 0; i < stop.text.size(); ++i) {
      while (k > 0 && stop.text[i] != stop.text[k]) k = stop.border[k];
      if (stop.text[i] == stop.text[k]) ++k;
      stop.border[i + 1] = k;
    }
    stops_.push_back(std::move(stop));
  }
}

void StopMatcher::advance(Stop& stop, char byte) {
  std::size_t& k = stop.matched;
  while (k > 0 && stop.text[k] != byte) k = stop.border[k];
  if (stop.text[k] == byte) ++k;
}

void StopMatcher::push(std::string_view text, std::string& out) {
  if (stopped_) return;
  if (stops_.empty()) {
    out += text;
    return;
  }
  // The bytes held from earlier pieces are a prefix of the holder's own text, so they need not be stored.
  const std::size_t held_before = stops_[holder_].matched;
  const std::string_view held = std::string_view(stops_[holder_].text).substr(0, held_before);
  const auto release = [&](std::size_t bytes) {  // the first `bytes` of held + text
    out += held.substr(0, std::min(bytes, held_before));
    if (bytes > held_before) out += text.substr(0, bytes - held_before);
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t match = 0;
    for (Stop& stop : stops_) {
      advance(stop, text[i]);
      if (stop.matched == stop.text.size()) match = std::max(match, stop.text.size());
    }
    if (match > 0) {
      stopped_ = true;
      release(held_before + i + 1 - match);
      return;
    }
  }
  std::size_t longest = 0;
  for (std::size_t i = 1; i < stops_.size(); ++i) {
    if (stops_[i].matched > stops_[longest].matched) longest = i;
  }
  release(held_before + text.size() - stops_[longest].matched);
  holder_ = longest;
}

void StopMatcher::finish(std::string& out) {
  if (stopped_ || stops_.empty()) return;
  out += std::string_view(stops_[holder_].text).substr(0, stops_[holder_].matched);
  stopped_ = true;
}

}  // namespace drafthorse
