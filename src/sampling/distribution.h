#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace drafthorse {

/// Probabilities of tokens, one row per slot: what a token is drawn from, and what verification divides by.
///
/// All rows share one layout. Dense: entry x is the probability of id x. Sparse: a few (id, probability) pairs with
/// strictly ascending ids, any number per row; every other id has probability 0. Rows need not sum to exactly 1: draws
/// are proportional to the entries. Memory is kept over clear(), so that a round of a known shape allocates nothing.
class Distribution {
 public:
  /// Removes all rows; the next row added may have either layout.
  void clear();
  /// Appends a dense row over [0, vocab_width) and returns it to be filled; what it holds before is unspecified. The
  /// span is valid until the next call that changes this object. Fails a CHECK when rows of another layout or width are
  /// held.
  std::span<float> add_dense(std::int64_t vocab_width);
  /// Appends a sparse row. `ids` strictly ascending, as many as `probs`. Fails a CHECK when dense rows are held.
  void add_sparse(std::span<const std::int32_t> ids, std::span<const float> probs);
  /// Appends one row proportional to max(p - q, 0), the distribution of the token that replaces a rejected draft
  /// (Leviathan, Kalman, Matias: "Fast Inference from Transformers via Speculative Decoding", 2023). It has p's layout
  /// and p's support, whatever q's layout is: ids that only q knows vanish. Normalised; all zeros when nothing is left.
  /// `p` and `q` are other objects than this one.
  void add_residual(const Distribution& p, std::int64_t p_row, const Distribution& q, std::int64_t q_row);

  std::int64_t rows() const { return static_cast<std::int64_t>(ends_.size()); }
  bool dense() const { return dense_; }
  /// The row's probabilities: by id when dense, beside ids(row) when sparse.
  std::span<const float> probs(std::int64_t row) const;
  /// The row's ids, ascending; empty when dense.
  std::span<const std::int32_t> ids(std::int64_t row) const;
  /// Probability of `token`; 0 outside a sparse row. A token no dense row has an entry for fails a CHECK.
  float prob(std::int64_t row, std::int32_t token) const;
  /// The token that `uniform` in [0, 1) falls on when the row's entries are laid side by side in ascending order of
  /// ids. Entries of probability 0 are never drawn. None when the row has no mass.
  std::optional<std::int32_t> sample(std::int64_t row, double uniform) const;
  /// Rows [begin, end) as a value of their own, same layout.
  Distribution slice(std::int64_t begin, std::int64_t end) const;

 private:
  std::size_t begin_of(std::int64_t row) const;
  std::span<float> grow(std::size_t count);

  bool dense_ = false;
  std::vector<float> probs_;       // rows side by side; may be longer than what is used
  std::vector<std::int32_t> ids_;  // parallel to probs_ when sparse
  std::vector<std::size_t> ends_;  // where each row ends in probs_
};

}  // namespace drafthorse
