#include "bench/read_bandwidth.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "bench/stopwatch.h"

namespace drafthorse {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;
constexpr std::size_t kStepWords = 32;       // 256 bytes of every stream in turn
constexpr std::size_t kPrefetchWords = 128;  // 1 KiB ahead
constexpr std::size_t kLineWords = 8;

std::size_t buffer_bytes() {
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);  // 0 or -1 where unknown
  const std::size_t wanted = cache > 0 ? 8 * static_cast<std::size_t>(cache) : 0;
  return std::clamp(wanted, 256 * kMegabyte, 1024 * kMegabyte);
}

/// Sums `words` words as `Streams` parts walked in lock-step. The sum keeps the reads alive.
template <std::size_t Streams>
std::uint64_t read_streams(const std::uint64_t* data, std::size_t words) {
  const std::size_t length = words / Streams / kStepWords * kStepWords;
  std::uint64_t sums[kLineWords] = {};
  for (std::size_t i = 0; i < length; i += kStepWords) {
    for (std::size_t stream = 0; stream < Streams; ++stream) {
      const std::uint64_t* at = data + stream * length + i;
      for (std::size_t k = 0; k < kStepWords; k += kLineWords) {
        __builtin_prefetch(at + kPrefetchWords + k);
        for (std::size_t lane = 0; lane < kLineWords; ++lane) sums[lane] += at[k + lane];
      }
    }
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : sums) sum += lane;
  return sum;
}

std::uint64_t read_part(const std::uint64_t* data, std::size_t words, int streams) {
  switch (streams) {
    case 1:
      return read_streams<1>(data, words);
    case 2:
      return read_streams<2>(data, words);
    case 4:
      return read_streams<4>(data, words);
    default:
      return read_streams<8>(data, words);
  }
}

}  // namespace

ReadBandwidth::ReadBandwidth(ExecContext& exec) : exec_(exec), buffer_(buffer_bytes()) {
  auto* words = buffer_.as<std::uint64_t>();
  const auto count = static_cast<std::int64_t>(buffer_.size() / sizeof(std::uint64_t));
  constexpr std::int64_t kPart = std::int64_t{1} << 17;
  exec_.pool.parallel_for(count / kPart,
                          [&](std::int64_t part, int) {  // a page that was never written reads from the cache
                            for (std::int64_t i = 0; i < kPart; ++i)
                              words[part * kPart + i] = static_cast<std::uint64_t>(i);
                          });
}

double ReadBandwidth::read_once(int streams) {
  const auto threads = static_cast<std::size_t>(exec_.pool.threads());
  const std::size_t words = buffer_.size() / sizeof(std::uint64_t) / threads;
  std::vector<std::uint64_t> sums(threads * kLineWords);
  const Stopwatch watch;
  exec_.pool.run([&](int thread) {
    const auto t = static_cast<std::size_t>(thread);
    sums[t * kLineWords] = read_part(buffer_.as<std::uint64_t>() + t * words, words, streams);
  });
  const double seconds = watch.seconds();
  std::uint64_t sum = 0;
  for (const std::uint64_t part : sums) sum += part;
  DRAFTHORSE_CHECK(sum > 0, "the buffer reads as zeros");
  return static_cast<double>(words * threads * sizeof(std::uint64_t)) / seconds / 1e9;
}

void ReadBandwidth::measure() {
  for (std::size_t i = 0; i < kStreams.size(); ++i) rates_[i].push_back(read_once(kStreams[i]));
}

double ReadBandwidth::gb_per_second() const {
  double best = 0.0;
  for (const std::vector<double>& rates : rates_) best = std::max(best, median(rates));
  return best;
}

}  // namespace drafthorse
