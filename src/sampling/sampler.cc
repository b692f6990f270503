#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/float_env.h"

namespace drafthorse {
namespace {

// Ids scored per task: long enough to be worth a thread, short enough that two threads share a vocabulary evenly.
constexpr std::int64_t kScoreIds = 16384;

}  // namespace

Sampler::Sampler(const SamplingParams& params, AcceptMode mode, std::uint64_t seed, std::int64_t vocab_width,
                 const ExecContext& exec)
    : params_(params), mode_(mode), seed_(seed), vocab_width_(vocab_width), exec_(exec), filters_(params, vocab_width) {
  DRAFTHORSE_CHECK(vocab_width >= 1, "vocabulary " << vocab_width);
}

std::span<const float> Sampler::whole_row(ConstRows logits, std::int64_t row) const {
  DRAFTHORSE_CHECK(logits.cols == vocab_width_, "rows of " << logits.cols << " logits, vocabulary " << vocab_width_);
  return {logits.row(row), static_cast<std::size_t>(vocab_width_)};
}

std::int32_t Sampler::argmax(std::span<const float> logits) const {
  return static_cast<std::int32_t>(exec_.kernels.argmax(logits.data(), static_cast<std::int64_t>(logits.size())));
}

std::int32_t Sampler::choose(std::span<const float> logits, std::int64_t slot, SamplerScratch& scratch) const {
  DRAFTHORSE_CHECK(std::ssize(logits) == vocab_width_, logits.size() << " logits, vocabulary " << vocab_width_);
  const FloatEnv env;
  if (greedy()) return argmax(logits);
  if (mode_ == AcceptMode::kCoupled) return choose_coupled(logits, {}, slot, scratch);
  scratch.target.clear();
  add_probabilities(logits, {}, scratch.target, scratch);
  return draw(scratch.target, 0, slot, Purpose::kToken, logits);
}

FilterScratch& Sampler::kept(std::span<const float> logits, std::span<const std::int32_t> ids,
                             SamplerScratch& scratch) const {
  filters_.keep(logits, exec_.kernels, scratch.filter);
  if (!ids.empty()) {
    for (std::int32_t& id : scratch.filter.ids) id = ids[static_cast<std::size_t>(id)];
  }
  return scratch.filter;
}

std::int32_t Sampler::choose_coupled(std::span<const float> logits, std::span<const std::int32_t> ids,
                                     std::int64_t slot, SamplerScratch& scratch) const {
  const KernelTable& kernels = exec_.kernels;
  const auto position = static_cast<std::uint64_t>(slot);
  if (filters_.any()) {
    const FilterScratch& left = kept(logits, ids, scratch);
    const auto count = static_cast<std::int64_t>(left.ids.size());
    scratch.scores.resize(left.ids.size());
    kernels.gumbel_scores(left.logits.data(), left.ids.data(), 0, params_.temperature, seed_, position,
                          scratch.scores.data(), count);
    return left.ids[static_cast<std::size_t>(kernels.argmax(scratch.scores.data(), count))];
  }
  const std::int64_t width = std::ssize(logits);
  const std::int64_t parts = (width + kScoreIds - 1) / kScoreIds;
  scratch.scores.resize(logits.size());
  scratch.winners.resize(static_cast<std::size_t>(parts));
  exec_.pool.parallel_for(parts, [&](std::int64_t part, int) {
    const std::int64_t first = part * kScoreIds;
    const std::int64_t count = std::min(kScoreIds, width - first);
    float* scores = scratch.scores.data() + first;
    const std::int32_t* own = ids.empty() ? nullptr : ids.data() + first;
    kernels.gumbel_scores(logits.data() + first, own, first, params_.temperature, seed_, position, scores, count);
    scratch.winners[static_cast<std::size_t>(part)] = first + kernels.argmax(scores, count);
  });
  const auto score = [&](std::int64_t at) { return scratch.scores[static_cast<std::size_t>(at)]; };
  std::int64_t best = scratch.winners.front();
  for (const std::int64_t winner : scratch.winners) {
    if (score(winner) > score(best) || (std::isnan(score(best)) && !std::isnan(score(winner)))) best = winner;
  }
  return ids.empty() ? static_cast<std::int32_t>(best) : ids[static_cast<std::size_t>(best)];
}

void Sampler::add_probabilities(std::span<const float> logits, std::span<const std::int32_t> ids, Distribution& out,
                                SamplerScratch& scratch) const {
  if (filters_.any()) {
    const FilterScratch& left = kept(logits, ids, scratch);
    out.add_sparse(left.ids, left.probs);
  } else if (!ids.empty()) {
    scratch.scores.resize(logits.size());
    exec_.kernels.softmax(logits.data(), params_.temperature, scratch.scores.data(), std::ssize(logits));
    out.add_sparse(ids, scratch.scores);
  } else {
    exec_.kernels.softmax(logits.data(), params_.temperature, out.add_dense(vocab_width_).data(), vocab_width_);
  }
}

// A row without a single number in it has no mass; its argmax is as good an answer as any, and it is an answer.
std::int32_t Sampler::draw(const Distribution& from, std::int64_t row, std::int64_t slot, Purpose purpose,
                           std::span<const float> logits) const {
  const double uniform = draw_uniform(seed_, static_cast<std::uint64_t>(slot), purpose);
  const std::optional<std::int32_t> token = from.sample(row, uniform);
  return token ? *token : argmax(logits);
}

void Sampler::propose(ConstRows logits, std::span<const std::int32_t> ids, std::int64_t first_slot,
                      std::span<std::int32_t> tokens, Distribution& proposed, SamplerScratch& scratch) const {
  DRAFTHORSE_CHECK(std::ssize(tokens) == logits.rows, tokens.size() << " tokens for " << logits.rows << " rows");
  const std::int64_t width = ids.empty() ? vocab_width_ : std::ssize(ids);
  DRAFTHORSE_CHECK(logits.cols == width, "rows of " << logits.cols << " logits for " << width << " ids");
  const FloatEnv env;
  const auto id_of = [&](std::int32_t at) { return ids.empty() ? at : ids[static_cast<std::size_t>(at)]; };
  const bool drawn = !greedy() && mode_ == AcceptMode::kRejection;
  proposed.clear();
  for (std::int64_t r = 0; r < logits.rows; ++r) {
    const std::span<const float> row{logits.row(r), static_cast<std::size_t>(width)};
    const std::int64_t slot = first_slot + r;
    std::int32_t& token = tokens[static_cast<std::size_t>(r)];
    if (greedy()) {
      token = id_of(argmax(row));
    } else if (drawn) {
      add_probabilities(row, ids, proposed, scratch);
      const double uniform = draw_uniform(seed_, static_cast<std::uint64_t>(slot), Purpose::kProposal);
      const std::optional<std::int32_t> sampled = proposed.sample(r, uniform);
      token = sampled ? *sampled : id_of(argmax(row));
    } else {
      token = choose_coupled(row, ids, slot, scratch);
    }
  }
}

Acceptance Sampler::verify(ConstRows logits, std::int64_t first_slot, std::span<const std::int32_t> drafts,
                           const Distribution* proposed, SamplerScratch& scratch) const {
  const std::int64_t n = std::ssize(drafts);
  DRAFTHORSE_CHECK(logits.rows == n + 1, logits.rows << " rows for " << n << " drafts");
  const FloatEnv env;
  if (!greedy() && mode_ == AcceptMode::kRejection) {
    return verify_by_rejection(logits, first_slot, drafts, proposed, scratch);
  }
  for (std::int64_t i = 0;; ++i) {  // rows behind the first difference are never looked at
    const std::int32_t token = choose(whole_row(logits, i), first_slot + i, scratch);
    if (i == n || token != drafts[static_cast<std::size_t>(i)]) return {i, token};
  }
}

Acceptance Sampler::verify_by_rejection(ConstRows logits, std::int64_t first_slot, std::span<const std::int32_t> drafts,
                                        const Distribution* proposed, SamplerScratch& scratch) const {
  const std::int64_t n = std::ssize(drafts);
  DRAFTHORSE_CHECK(proposed == nullptr || proposed->rows() == n, "a proposal of " << n << " tokens from other rows");
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t slot = first_slot + i;
    const std::int32_t token = drafts[static_cast<std::size_t>(i)];
    DRAFTHORSE_CHECK(token >= 0 && token < vocab_width_, "draft " << token << " of a vocabulary of " << vocab_width_);
    const std::span<const float> row = whole_row(logits, i);
    Distribution& target = scratch.target;
    target.clear();
    add_probabilities(row, {}, target, scratch);
    const float q = proposed == nullptr ? 1.0f : proposed->prob(i, token);
    const double coin = draw_uniform(seed_, static_cast<std::uint64_t>(slot), Purpose::kAccept);
    if (accept_draft(target.prob(0, token), q, coin)) continue;

    scratch.residual.clear();
    if (proposed == nullptr) {
      const float certain = 1.0f;
      scratch.picked.clear();
      scratch.picked.add_sparse({&token, 1}, {&certain, 1});
      scratch.residual.add_residual(target, 0, scratch.picked, 0);
    } else {
      scratch.residual.add_residual(target, 0, *proposed, i);
    }
    // Where P and q are equal but for rounding, a draft can fall and leave no residual: then P is the distribution of
    // what follows.
    const double uniform = draw_uniform(seed_, static_cast<std::uint64_t>(slot), Purpose::kToken);
    const std::optional<std::int32_t> next = scratch.residual.sample(0, uniform);
    return {i, next ? *next : draw(target, 0, slot, Purpose::kToken, row)};
  }
  return {n, choose(whole_row(logits, n), first_slot + n, scratch)};
}

}  // namespace drafthorse
