#pragma once

#include <cstdint>
#include <functional>

namespace drafthorse {

/// What LoadOptions::progress calls: a line "loading: 42 %" on standard error that rewrites itself and vanishes at the
/// end, shown only when loading takes longer than a moment. Empty when standard error is not a terminal.
std::function<void(std::uint64_t, std::uint64_t)> load_progress();

}  // namespace drafthorse
