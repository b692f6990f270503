#include "cli/load_progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace drafthorse {
namespace {

constexpr std::chrono::milliseconds kMoment{500};

}  // namespace

std::function<void(std::uint64_t, std::uint64_t)> load_progress(const std::string& doing) {
  if (isatty(STDERR_FILENO) == 0) return {};
  using Clock = std::chrono::steady_clock;
  return [doing, start = Clock::now(), shown = -1](std::uint64_t done, std::uint64_t total) mutable {
    const int percent = total == 0 ? 100 : static_cast<int>(100 * done / total);
    if (done >= total) {
      if (shown >= 0) std::fputs("\r\033[K", stderr);
      shown = -1;
      start = Clock::now();  // the draft comes next
    } else if (percent != shown && Clock::now() - start > kMoment) {
      std::fprintf(stderr, "\r%s: %d %%", doing.c_str(), percent);
      shown = percent;
    }
    std::fflush(stderr);
  };
}

}  // namespace drafthorse
