#pragma once

#include <cstdint>
#include <span>

#include "model/model.h"
#include "ops/attention.h"
#include "ops/exec_context.h"
#include "ops/heads.h"
#include "tensor/arena.h"

namespace drafthorse {

/// A ragged batch as one attention layer sees it.
struct LayerRows {
  std::span<const HeadRun> runs;  ///< one per sequence: where its new keys and values go
  const KvPages* pages;           ///< one per sequence: what attention reads
  const AttentionPlan* plan;
};

/// The rows of a ragged batch of causal sequences whose layers keep KvCaches, for one forward pass. Every key at or
/// before a row is visible, or the last `window` of them. Lives in the forward's scratch; the caches' offsets move in
/// close(), so a pass that throws leaves them as they were.
class CausalBatch {
 public:
  /// `windows`: the distinct windows of the model's layers, 0 = everything.
  CausalBatch(const ForwardBatch& batch, std::span<const std::int64_t> windows, const AttentionShape& shape,
              Arena& scratch, const ExecContext& exec);

  std::int64_t rows() const { return rows_; }
  /// All token ids, one sequence after another.
  std::span<const std::int32_t> ids() const { return {ids_, static_cast<std::size_t>(rows_)}; }
  /// Makes room in the caches of `layer`, whose window is windows[window_index]. Valid until the next call.
  LayerRows layer(std::int64_t layer, std::size_t window_index);
  /// The rows are written in every layer: moves the offsets.
  void close();

 private:
  std::span<const SequenceRows> sequences_;
  std::int64_t rows_ = 0;
  std::int32_t* ids_ = nullptr;
  HeadRun* runs_ = nullptr;
  KvPages* pages_ = nullptr;
  AttentionPlan* plans_ = nullptr;  // one per window
};

}  // namespace drafthorse
