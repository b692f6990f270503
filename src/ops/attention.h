#pragma once

#include <cstdint>
#include <span>

#include "ops/exec_context.h"
#include "tensor/arena.h"
#include "tensor/kv_layout.h"
#include "tensor/rows.h"

namespace drafthorse {

/// Attention of one kind of layer. Query head h reads kv head h / (heads / kv_heads).
struct AttentionShape {
  KvLayout layout;
  std::int64_t heads = 0;
  float scale = 1.0f;    ///< of scores
  float softcap = 0.0f;  ///< score = cap * tanh(score / cap); 0: off
};

/// Query rows [first_row, first_row + rows) of one sequence.
struct QueryRun {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
};

/// How a forward's query rows are cut into tasks, made once and used by every layer that shares shape and visibility.
/// Work is split over sequences, kv heads, blocks of query rows and, when that gives too few tasks, chunks of
/// kAttentionChunk keys. Each (row, chunk) is computed the same way whoever computes it, and a row's chunks are
/// combined in ascending order: the cut never shows in the result.
class AttentionPlan {
 public:
  AttentionPlan() = default;
  /// Row r of the queries sees keys [visible_begin[r], visible_end[r]), at least one. The arrays, and what `scratch`
  /// lends, must live as long as the plan.
  AttentionPlan(const AttentionShape& shape, std::span<const QueryRun> runs, const std::int64_t* visible_begin,
                const std::int64_t* visible_end, Arena& scratch, const ExecContext& exec);

  /// out = softmax(scale * q k) v for every row of every run. pages[i]: keys and values of run i. q and out [rows,
  /// heads * head_dim].
  void run(ConstRows q, const KvPages* pages, Rows out, const ExecContext& exec) const;

  /// Upper bound of the scratch a plan takes.
  static std::size_t scratch_bytes(const AttentionShape& shape, std::int64_t rows, std::int64_t positions, int threads);

 private:
  /// A block of query rows and the chunks any of them sees.
  struct Block {
    std::int64_t run;
    std::int64_t first_row;
    std::int64_t rows;
    std::int64_t first_chunk;
    std::int64_t chunks;
    std::int64_t visible_end;
    std::int64_t first_item;  // (kv head, chunk) pairs of earlier blocks
  };
  /// Partial results of some (block, kv head): [chunks][rows * group].
  struct Partials {
    float* values;
    float* max;
    float* sum;
  };

  std::int64_t group() const { return shape_.heads / shape_.layout.kv_heads; }
  Partials partials(std::int64_t index) const;
  void compute(const Block& block, std::int64_t kv_head, std::int64_t chunk, ConstRows q, const KvPages& pages,
               const Partials& into, const ExecContext& exec) const;
  void combine(const Block& block, std::int64_t kv_head, std::int64_t item_stride, const Partials& from, Rows out,
               const ExecContext& exec) const;

  AttentionShape shape_;
  const std::int64_t* visible_begin_ = nullptr;
  const std::int64_t* visible_end_ = nullptr;
  Block* blocks_ = nullptr;
  std::int64_t block_count_ = 0;
  std::int64_t block_rows_ = 0;  // query rows x group of the largest block
  std::int64_t items_ = 0;       // (block, kv head, chunk) triples
  bool split_chunks_ = false;
  std::int64_t slots_per_thread_ = 0;
  float* values_ = nullptr;
  float* max_ = nullptr;
  float* sum_ = nullptr;
};

}  // namespace drafthorse
