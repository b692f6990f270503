#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"
#include "ops/exec_context.h"

namespace drafthorse {

/// What a target thinks of a text: how surprising each token is after those before it, and what it would have expected.
struct Score {
  /// The likeliest tokens at one place, likeliest first; equal logits by ascending id.
  struct Top {
    std::vector<std::int32_t> ids;
    std::vector<float> logits;
  };
  std::vector<double> nll;  ///< [t] = -ln p(ids[t + 1] | ids[0..t]); one less than ids
  std::vector<Top> top;     ///< [t] = what follows ids[0..t]; empty when none were asked for

  /// 0 for a single id.
  double nll_mean() const;
};

/// Throws Error when `ids` is empty, holds an id outside the vocabulary, or is longer than the context.
void check_scorable(std::span<const std::int32_t> ids, std::int64_t vocab_width, std::int64_t context);
/// Scores `ids` as they are given. `top` >= 0 expected tokens per place, at most the vocabulary. Throws Error as
/// check_scorable() does.
Score score_ids(Model& target, ExecContext& exec, std::span<const std::int32_t> ids, std::int64_t top);

}  // namespace drafthorse
