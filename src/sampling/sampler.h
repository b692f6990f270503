#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "ops/exec_context.h"
#include "sampling/acceptance.h"
#include "sampling/distribution.h"
#include "sampling/filters.h"
#include "sampling/sampling_params.h"
#include "tensor/rows.h"

namespace drafthorse {

/// Memory a Sampler works in. Whoever samples owns one and reuses it; nothing in it outlives a call.
struct SamplerScratch {
  FilterScratch filter;
  Distribution target;
  Distribution picked;
  Distribution residual;
  std::vector<float> scores;
  std::vector<std::int64_t> winners;
};

/// Turns logits into tokens for one request. A pure function of (logits, slot): every draw is keyed by the seed, the
/// slot of the token that is chosen and what the draw is for, never by how many draws came before. So a slot's token
/// does not depend on rounds or depth.
///
/// Three ways to choose, all after the same filters:
///
/// - greedy: the largest logit, the lowest id on ties;
/// - coupled: argmax of logit / temperature + G(seed, slot, id), G standard Gumbel noise, which is a sample of
///   softmax(logit / temperature) (the Gumbel-max trick). The draft uses the same noise on its own logits, so a good
///   draft mostly names the target's own choice;
/// - rejection: a draw from softmax(logit / temperature). Drafts are drawn from theirs and stand with probability
///   min(1, p / q).
///
/// A row of `logits` stands for one slot and has vocab_width columns.
class Sampler {
 public:
  /// `exec` outlives the sampler. For greedy `params` neither mode nor seed matters.
  Sampler(const SamplingParams& params, AcceptMode mode, std::uint64_t seed, std::int64_t vocab_width,
          const ExecContext& exec);

  bool greedy() const { return params_.greedy(); }
  AcceptMode mode() const { return mode_; }
  std::uint64_t seed() const { return seed_; }
  std::int64_t vocab_width() const { return vocab_width_; }
  /// False: a row's argmax (LogitsSink::argmax) is its choice and nobody needs the row itself.
  bool needs_logits() const { return !greedy(); }

  /// The target's token for `slot`.
  std::int32_t choose(std::span<const float> logits, std::int64_t slot, SamplerScratch& scratch) const;

  /// The draft's tokens: row r stands for slot first_slot + r; tokens has one entry per row. `proposed` is what they
  /// were drawn from, row by row; it has rows under rejection only. `ids`, strictly ascending: logit i is that of
  /// ids[i], and no other id can be drawn; empty: logit i is that of id i.
  void propose(ConstRows logits, std::span<const std::int32_t> ids, std::int64_t first_slot,
               std::span<std::int32_t> tokens, Distribution& proposed, SamplerScratch& scratch) const;

  /// The target's verdict: rows 0..n of `logits` stand for slots first_slot .. first_slot + n, drafts[i] is proposed
  /// for slot first_slot + i. Under rejection proposed[i] is what drafts[i] was drawn from; null: the drafts were not
  /// drawn but picked, each with probability 1.
  Acceptance verify(ConstRows logits, std::int64_t first_slot, std::span<const std::int32_t> drafts,
                    const Distribution* proposed, SamplerScratch& scratch) const;

 private:
  /// `ids` as in propose.
  std::int32_t choose_coupled(std::span<const float> logits, std::span<const std::int32_t> ids, std::int64_t slot,
                              SamplerScratch& scratch) const;
  void add_probabilities(std::span<const float> logits, std::span<const std::int32_t> ids, Distribution& out,
                         SamplerScratch& scratch) const;
  std::int32_t draw(const Distribution& from, std::int64_t row, std::int64_t slot, Purpose purpose,
                    std::span<const float> logits) const;
  Acceptance verify_by_rejection(ConstRows logits, std::int64_t first_slot, std::span<const std::int32_t> drafts,
                                 const Distribution* proposed, SamplerScratch& scratch) const;
  std::span<const float> whole_row(ConstRows logits, std::int64_t row) const;
  /// What the filters keep of a row, under its own ids.
  FilterScratch& kept(std::span<const float> logits, std::span<const std::int32_t> ids, SamplerScratch& scratch) const;
  std::int32_t argmax(std::span<const float> logits) const;

  SamplingParams params_;
  AcceptMode mode_;
  std::uint64_t seed_;
  std::int64_t vocab_width_;
  const ExecContext& exec_;
  Filters filters_;
};

}  // namespace drafthorse
