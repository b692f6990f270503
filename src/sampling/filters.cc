#include "sampling/filters.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

#include "base/check.h"
#include "sampling/mass.h"

namespace drafthorse {
namespace {

using Entry = FilterScratch::Entry;

// The order both filters rank by: larger first, the lower id among equals.
bool ranks_before(const Entry& a, const Entry& b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index);
}
bool lower_index(const Entry& a, const Entry& b) { return a.index < b.index; }

// Positive floats order like their bits: the exponent and four bits of mantissa make 16 bins per octave.
constexpr int kBinShift = 19;
constexpr std::size_t kBins = std::size_t{1} << (31 - kBinShift);
std::size_t bin_of(float p) { return std::bit_cast<std::uint32_t>(p) >> kBinShift; }

// The entry that ranks last among those with less than top_p before them. Whole bins are weighed, the largest values
// first, and only the bin in which the mass is reached is sorted.
Entry last_within_mass(std::span<const float> probs, double top_p, FilterScratch& scratch) {
  std::vector<double>& bins = scratch.bins;
  bins.assign(kBins, 0.0);
  for (const float p : probs) {
    if (p > 0.0f) bins[bin_of(p)] += p;
  }
  double before = 0.0;
  std::size_t bin = kBins - 1;
  while (bin > 0 && before + bins[bin] < top_p) before += bins[bin--];

  std::vector<Entry>& edge = scratch.entries;
  edge.clear();
  for (std::size_t i = 0; i < probs.size(); ++i) {
    if (probs[i] > 0.0f && bin_of(probs[i]) == bin) edge.push_back({probs[i], static_cast<std::int32_t>(i)});
  }
  std::sort(edge.begin(), edge.end(), ranks_before);
  Entry last = {0.0f, 0};  // the mass is never reached: nothing that counts ranks behind this
  for (const Entry& entry : edge) {
    if (!(before < top_p)) break;
    before += entry.value;
    last = entry;
  }
  return last;
}

}  // namespace

Filters::Filters(const SamplingParams& params, std::int64_t vocab_width)
    : temperature_(params.temperature),
      top_k_(params.top_k > 0 && params.top_k < vocab_width ? params.top_k : 0),
      top_p_(params.top_p > 0.0f && params.top_p < 1.0f ? params.top_p : 1.0f),
      min_p_(params.min_p > 0.0f && params.min_p <= 1.0f ? params.min_p : 0.0f) {}

// One pass with a buffer of 2k candidates: once it is full the better half stays, and its worst value is the bar for
// later ids. An equal value with a higher id never gets in. A NaN or -infinity is not above any bar.
void Filters::keep_top_k(std::span<const float> logits, FilterScratch& out) const {
  const auto k = static_cast<std::ptrdiff_t>(top_k_);
  std::vector<Entry>& best = out.entries;
  best.clear();
  float bar = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > bar)) continue;
    best.push_back({logits[i], static_cast<std::int32_t>(i)});
    if (std::ssize(best) == 2 * k) {
      std::nth_element(best.begin(), best.begin() + k - 1, best.end(), ranks_before);
      bar = best[static_cast<std::size_t>(k - 1)].value;
      best.erase(best.begin() + k, best.end());
    }
  }
  if (std::ssize(best) > k) {
    std::nth_element(best.begin(), best.begin() + k, best.end(), ranks_before);
    best.erase(best.begin() + k, best.end());
  }
  std::sort(best.begin(), best.end(), lower_index);
  for (const Entry& entry : best) {
    out.ids.push_back(entry.index);
    out.logits.push_back(entry.value);
  }
}

// Leaves in out.passed the indices of `probs` that top-p and min-p let through, ascending.
void Filters::pass_by_probability(std::span<const float> probs, const KernelTable& kernels, FilterScratch& out) const {
  float least = 0.0f;
  if (min_p_ > 0.0f) {
    const std::int64_t largest = kernels.argmax(probs.data(), static_cast<std::int64_t>(probs.size()));
    least = min_p_ * probs[static_cast<std::size_t>(largest)];
  }
  Entry last = {0.0f, 0};
  if (top_p_ < 1.0f) last = last_within_mass(probs, top_p_, out);
  out.passed.clear();
  for (std::size_t i = 0; i < probs.size(); ++i) {
    const Entry entry = {probs[i], static_cast<std::int32_t>(i)};
    if (entry.value > 0.0f && entry.value >= least && !ranks_before(last, entry)) out.passed.push_back(entry.index);
  }
}

void Filters::keep(std::span<const float> logits, const KernelTable& kernels, FilterScratch& out) const {
  DRAFTHORSE_CHECK(any(), "no filter is on");
  out.ids.clear();
  out.logits.clear();
  out.probs.clear();
  if (top_k_ > 0) {
    keep_top_k(logits, out);
    out.probs.resize(out.ids.size());
    if (!out.ids.empty()) {
      kernels.softmax(out.logits.data(), temperature_, out.probs.data(), static_cast<std::int64_t>(out.ids.size()));
    }
    if (!out.ids.empty() && (top_p_ < 1.0f || min_p_ > 0.0f)) {
      pass_by_probability(out.probs, kernels, out);
      std::size_t kept = 0;
      for (const std::int32_t index : out.passed) {  // ascending, so nothing is overwritten before it is read
        const auto from = static_cast<std::size_t>(index);
        out.ids[kept] = out.ids[from];
        out.logits[kept] = out.logits[from];
        out.probs[kept] = out.probs[from];
        ++kept;
      }
      out.ids.resize(kept);
      out.logits.resize(kept);
      out.probs.resize(kept);
    }
  } else {
    out.dense.resize(logits.size());
    kernels.softmax(logits.data(), temperature_, out.dense.data(), static_cast<std::int64_t>(logits.size()));
    pass_by_probability(out.dense, kernels, out);
    for (const std::int32_t id : out.passed) {
      out.ids.push_back(id);
      out.logits.push_back(logits[static_cast<std::size_t>(id)]);
      out.probs.push_back(out.dense[static_cast<std::size_t>(id)]);
    }
  }
  const double total = mass(out.probs);
  if (!(total > 0.0)) {
    const std::int64_t largest = kernels.argmax(logits.data(), static_cast<std::int64_t>(logits.size()));
    out.ids.assign(1, static_cast<std::int32_t>(largest));
    out.logits.assign(1, logits[static_cast<std::size_t>(largest)]);
    out.probs.assign(1, 1.0f);
    return;
  }
  const float scale = normalizing_scale(total);
  for (float& p : out.probs) p *= scale;
}

}  // namespace drafthorse
