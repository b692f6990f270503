#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/exec_context.h"
#include "sampling/sampling_params.h"

namespace drafthorse {

/// What filters left of a row, and the memory they worked in. Owned by the caller and reused from row to row.
struct FilterScratch {
  std::vector<std::int32_t> ids;  ///< survivors, ascending, at least one
  std::vector<float> logits;      ///< of ids
  std::vector<float> probs;       ///< of ids, summing to 1

  struct Entry {
    float value;
    std::int32_t index;
  };
  std::vector<Entry> entries;        // candidates of one step
  std::vector<double> bins;          // masses by size of probability
  std::vector<std::int32_t> passed;  // indices that passed top-p and min-p
  std::vector<float> dense;          // softmax over the vocabulary
};

/// top-k, then top-p, then min-p. What survives of a row depends on that row alone. The vocabulary is never sorted as a
/// whole.
class Filters {
 public:
  /// Options out of range are off, see SamplingParams.
  Filters(const SamplingParams& params, std::int64_t vocab_width);

  /// False: every id survives, and keep() must not be called.
  bool any() const { return top_k_ > 0 || top_p_ < 1.0f || min_p_ > 0.0f; }
  /// Fills out.ids, out.logits and out.probs from a whole row of logits:
  ///   top-k keeps the k largest logits, the lowest ids among equal ones;
  ///   p = softmax(logits / temperature) over those;
  ///   top-p keeps an entry iff the mass of the entries before it, by falling p and rising id, is less than top_p;
  ///   min-p drops entries below min_p times the largest p;
  ///   what is left is divided by its sum.
  /// A row of which nothing can be kept (no number in it) leaves its argmax alone, with probability 1.
  void keep(std::span<const float> logits, const KernelTable& kernels, FilterScratch& out) const;

 private:
  void keep_top_k(std::span<const float> logits, FilterScratch& out) const;
  void pass_by_probability(std::span<const float> probs, const KernelTable& kernels, FilterScratch& out) const;

  float temperature_;
  std::int64_t top_k_;  // 0: off
  float top_p_;         // 1: off
  float min_p_;         // 0: off
};

}  // namespace drafthorse
