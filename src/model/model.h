#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "quant/weight_type.h"
#include "tensor/rows.h"

namespace drafthorse {

/// What a caller wants of logit rows; nothing else is materialised. Pointers may be null; arrays have one entry per
/// row.
struct LogitsSink {
  Rows logits;                     ///< data != null: every logit, [rows, vocab_width]
  std::int32_t* argmax = nullptr;  ///< the largest logit's id, the lowest id on ties
  std::uint64_t* hash = nullptr;   ///< KernelTable::logits_hash of the whole row
};

/// A model's shape, for pairing and sizing.
struct ModelFacts {
  std::string architecture;
  std::int64_t layers = 0;
  std::int64_t hidden_width = 0;  ///< of embeddings, hidden rows and each tap
  std::int64_t vocab_width = 0;   ///< logits per row
  std::int64_t context = 0;       ///< positions a sequence may hold
};

/// One sequence's part of a forward pass: `ids` go to positions [caches->offset(), caches->offset() + ids.size()).
struct SequenceRows {
  std::span<const std::int32_t> ids;  ///< at least one
  CacheSet* caches = nullptr;         ///< made by this model; its offset advances by ids.size()
};

/// A ragged batch: the rows of several sequences, one after another. One request is a batch of one sequence.
struct ForwardBatch {
  std::span<const SequenceRows> sequences;
  /// Layers whose output (residual stream after the layer) is wanted, strictly ascending: the union of what all
  /// drafters want.
  std::span<const std::int64_t> taps;
};

/// Results of a forward pass, one row per input row in batch order. They live in the model's scratch until its next
/// forward.
struct ForwardResult {
  ConstRows hidden;  ///< [rows, hidden_width], after the final norm
  ConstRows taps;    ///< [rows, taps * hidden_width], taps side by side in the batch's order; rows = 0 without taps
};

/// The narrow view of a target that a draft model may use: raw embeddings and raw logits.
class DraftTarget {
 public:
  virtual ~DraftTarget() = default;
  virtual const ModelFacts& facts() const = 0;
  /// The token table's rows, without any scaling the model itself applies. out: [ids.size(), hidden_width].
  /// An id outside [0, vocab_width) fails a CHECK.
  virtual void embed_raw(std::span<const std::int32_t> ids, Rows out) = 0;
  /// Head projection of hidden rows, then * multiplier, then cap * tanh(. / cap) when cap > 0; nothing the target
  /// itself adds.
  virtual void raw_logits(ConstRows hidden, float multiplier, float cap, const LogitsSink& sink) = 0;
  /// How the head's weight is held.
  virtual WeightType head_type() const = 0;
  /// Row `id` of the head's weight as it is held, [hidden_width] values. Any number of threads may ask.
  virtual void head_row(std::int32_t id, float* values) const = 0;
};

/// A target network. A row's results depend only on its own sequence's tokens: not on other rows, chunks, threads or
/// page size.
class Model : public DraftTarget {
 public:
  /// Empty caches for one sequence of up to facts().context positions.
  virtual std::unique_ptr<CacheSet> make_caches() = 0;
  /// Runs the batch and writes its keys and values. Fails a CHECK when a sequence would pass the context or an id is
  /// out of range.
  virtual ForwardResult forward(const ForwardBatch& batch) = 0;
  /// Logits of hidden rows as the model defines them (soft cap included).
  virtual void unembed(ConstRows hidden, const LogitsSink& sink) = 0;
};

}  // namespace drafthorse
