#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace drafthorse {

/// What long work calls with bytes done and bytes in all: a line "<doing>: 42 %" on standard error that rewrites itself
/// and vanishes at the end, shown only when the work takes longer than a moment. Empty when standard error is not a
/// terminal.
std::function<void(std::uint64_t, std::uint64_t)> load_progress(const std::string& doing);

}  // namespace drafthorse
