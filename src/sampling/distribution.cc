#include "sampling/distribution.h"

#include <algorithm>

#include "base/check.h"
#include "sampling/mass.h"

namespace drafthorse {
namespace {

constexpr std::size_t kSumBlock = 1024;

// The last entry with mass; the span has one.
std::size_t last_with_mass(std::span<const float> probs) {
  std::size_t i = probs.size();
  while (!(probs[i - 1] > 0.0f)) --i;
  return i - 1;
}

// Index of the entry that covers the share `uniform` of the mass. Block sums first: only one block is walked entry by
// entry.
std::optional<std::size_t> entry_at(std::span<const float> probs, double uniform) {
  const double total = mass(probs);
  if (!(total > 0.0)) return std::nullopt;
  const double point = uniform * total;
  double before = 0.0;
  for (std::size_t begin = 0; begin < probs.size(); begin += kSumBlock) {
    const std::span<const float> block = probs.subspan(begin, std::min(kSumBlock, probs.size() - begin));
    const double after = before + mass(block);
    if (after > point) {
      double sum = before;
      for (std::size_t i = 0; i < block.size(); ++i) {
        sum += block[i];
        if (sum > point && block[i] > 0.0f) return begin + i;
      }
      return begin + last_with_mass(block);  // the two orders of addition differ in the last bit
    }
    before = after;
  }
  return last_with_mass(probs);
}

}  // namespace

void Distribution::clear() { ends_.clear(); }

std::size_t Distribution::begin_of(std::int64_t row) const {
  DRAFTHORSE_CHECK(row >= 0 && row < rows(), "row " << row << " of " << rows());
  return row == 0 ? 0 : ends_[static_cast<std::size_t>(row - 1)];
}

// Memory only ever grows and is not cleared: a dense row may be a megabyte.
std::span<float> Distribution::grow(std::size_t count) {
  const std::size_t begin = ends_.empty() ? 0 : ends_.back();
  if (probs_.size() < begin + count) probs_.resize(begin + count);
  if (!dense_ && ids_.size() < begin + count) ids_.resize(begin + count);
  ends_.push_back(begin + count);
  return {probs_.data() + begin, count};
}

std::span<float> Distribution::add_dense(std::int64_t vocab_width) {
  DRAFTHORSE_CHECK(vocab_width >= 1, "vocabulary " << vocab_width);
  DRAFTHORSE_CHECK(ends_.empty() || (dense_ && ends_.front() == static_cast<std::size_t>(vocab_width)),
                   "a dense row over " << vocab_width << " ids beside rows of another layout");
  dense_ = true;
  return grow(static_cast<std::size_t>(vocab_width));
}

void Distribution::add_sparse(std::span<const std::int32_t> ids, std::span<const float> probs) {
  DRAFTHORSE_CHECK(ids.size() == probs.size(), ids.size() << " ids, " << probs.size() << " probabilities");
  DRAFTHORSE_CHECK(ends_.empty() || !dense_, "a sparse row beside dense ones");
  for (std::size_t i = 1; i < ids.size(); ++i) {
    DRAFTHORSE_CHECK(ids[i - 1] < ids[i], "ids " << ids[i - 1] << ", " << ids[i] << " are not ascending");
  }
  dense_ = false;
  const std::span<float> row = grow(ids.size());
  std::copy(probs.begin(), probs.end(), row.begin());
  std::copy(ids.begin(), ids.end(), ids_.begin() + (row.data() - probs_.data()));
}

void Distribution::add_residual(const Distribution& p, std::int64_t p_row, const Distribution& q, std::int64_t q_row) {
  DRAFTHORSE_CHECK(this != &p && this != &q, "a residual needs a place of its own");
  const std::span<const float> target = p.probs(p_row);
  const std::span<const float> draft = q.probs(q_row);
  const std::span<const std::int32_t> draft_ids = q.ids(q_row);
  std::span<float> left;
  if (p.dense()) {
    left = add_dense(static_cast<std::int64_t>(target.size()));
  } else {
    add_sparse(p.ids(p_row), target);
    left = {probs_.data() + begin_of(rows() - 1), target.size()};
  }
  if (p.dense() && q.dense()) {
    DRAFTHORSE_CHECK(target.size() == draft.size(), "vocabularies of " << target.size() << " and " << draft.size());
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = std::max(target[i] - draft[i], 0.0f);
  } else if (p.dense()) {
    std::copy(target.begin(), target.end(), left.begin());
    for (std::size_t i = 0; i < draft.size(); ++i) {
      if (static_cast<std::size_t>(draft_ids[i]) >= left.size()) continue;
      float& entry = left[static_cast<std::size_t>(draft_ids[i])];
      entry = std::max(entry - draft[i], 0.0f);
    }
  } else {
    const std::span<const std::int32_t> ids = p.ids(p_row);
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = std::max(target[i] - q.prob(q_row, ids[i]), 0.0f);
  }
  const float scale = normalizing_scale(mass(left));
  for (float& entry : left) entry *= scale;
}

std::span<const float> Distribution::probs(std::int64_t row) const {
  const std::size_t begin = begin_of(row);
  return {probs_.data() + begin, ends_[static_cast<std::size_t>(row)] - begin};
}

std::span<const std::int32_t> Distribution::ids(std::int64_t row) const {
  const std::size_t begin = begin_of(row);
  if (dense_) return {};
  return {ids_.data() + begin, ends_[static_cast<std::size_t>(row)] - begin};
}

float Distribution::prob(std::int64_t row, std::int32_t token) const {
  const std::span<const float> entries = probs(row);
  if (dense_) {
    DRAFTHORSE_CHECK(token >= 0 && static_cast<std::size_t>(token) < entries.size(),
                     "token " << token << " of a vocabulary of " << entries.size());
    return entries[static_cast<std::size_t>(token)];
  }
  const std::span<const std::int32_t> support = ids(row);
  const auto found = std::lower_bound(support.begin(), support.end(), token);
  if (found == support.end() || *found != token) return 0.0f;
  return entries[static_cast<std::size_t>(found - support.begin())];
}

std::optional<std::int32_t> Distribution::sample(std::int64_t row, double uniform) const {
  const std::optional<std::size_t> entry = entry_at(probs(row), uniform);
  if (!entry) return std::nullopt;
  return dense_ ? static_cast<std::int32_t>(*entry) : ids(row)[*entry];
}

Distribution Distribution::slice(std::int64_t begin, std::int64_t end) const {
  DRAFTHORSE_CHECK(0 <= begin && begin <= end && end <= rows(), "rows [" << begin << ", " << end << ") of " << rows());
  Distribution out;
  for (std::int64_t row = begin; row < end; ++row) {
    if (dense_) {
      const std::span<const float> from = probs(row);
      std::copy(from.begin(), from.end(), out.add_dense(static_cast<std::int64_t>(from.size())).begin());
    } else {
      out.add_sparse(ids(row), probs(row));
    }
  }
  return out;
}

}  // namespace drafthorse
