#include "bench/passes.h"

#include <algorithm>

#include "base/check.h"
#include "base/random.h"
#include "bench/stopwatch.h"

namespace drafthorse {
namespace {

constexpr std::int64_t kLeastRounds = 3;
constexpr std::int64_t kMostRounds = 101;

}  // namespace

PassTimer::PassTimer(Model& target) : target_(target), caches_(target.make_caches()), argmax_(kMaxRows) {
  DRAFTHORSE_CHECK(target.facts().context >= kBenchContext + kMaxRows);
  for (std::int64_t i = 0; i < kBenchContext; ++i) {
    const auto id =
        splitmix64(3, static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(target.facts().vocab_width);
    ids_.push_back(static_cast<std::int32_t>(id));
  }
  constexpr std::int64_t kChunk = 128;
  for (std::int64_t at = 0; at < kBenchContext; at += kChunk) {
    const SequenceRows run{std::span(ids_).subspan(static_cast<std::size_t>(at), kChunk), caches_.get()};
    target_.forward({.sequences = {&run, 1}, .taps = {}});
  }
}

double PassTimer::time(std::int64_t rows) {
  const Stopwatch watch;
  CacheTransaction undone(*caches_, rows);
  const SequenceRows run{std::span(ids_).first(static_cast<std::size_t>(rows)), caches_.get()};
  const ForwardResult forward = target_.forward({.sequences = {&run, 1}, .taps = {}});
  LogitsSink sink;
  sink.argmax = argmax_.data();
  target_.unembed(forward.hidden, sink);
  return watch.seconds();
}

PassReport measure_passes(Model& target, ExecContext& exec, double seconds) {
  ReadBandwidth bandwidth(exec);
  PassTimer passes(target);
  std::vector<std::int64_t> row_counts = {1, 8};
  for (const std::int64_t rows : row_counts) passes.time(rows);  // memory is taken, clocks rise
  const double one_round = PassTimer::kMaxRows * (passes.time(1) + passes.time(8)) / 2;
  if (one_round * kLeastRounds <= seconds) {
    row_counts.clear();
    for (std::int64_t rows = 1; rows <= PassTimer::kMaxRows; ++rows) row_counts.push_back(rows);
  }
  std::map<std::int64_t, std::vector<double>> times;
  PassReport report;
  const Stopwatch watch;
  while (report.rounds < kLeastRounds || (report.rounds < kMostRounds && watch.seconds() < seconds)) {
    for (const std::int64_t rows : row_counts) times[rows].push_back(passes.time(rows));
    bandwidth.measure();
    ++report.rounds;
  }
  for (const auto& [rows, all] : times) report.milliseconds[rows] = 1e3 * median(all);
  report.read_gb_per_second = bandwidth.gb_per_second();
  return report;
}

}  // namespace drafthorse
