#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/kv_cache.h"
#include "model/layers/attention_block.h"
#include "model/layers/weight_loader.h"
#include "ops/attention.h"
#include "ops/exec_context.h"
#include "quant/packed_matrix.h"
#include "tensor/rows.h"

namespace drafthorse {

/// Attention of a draft layer: block rows attend to context rows, which only have keys and values, and to themselves.
/// Context rows stay in the cache, block rows live in the overlay beside it.
class ContextAttention {
 public:
  /// The layers under "<module>.": q; k and v stacked (from k_proj and v_proj, or the tail of a fused qkv_proj); the
  /// optional gate g_proj; o.
  struct Specs {
    LinearSpec q;
    LinearSpec kv;
    LinearSpec o;
    std::optional<LinearSpec> gate;
  };
  static Specs specs(const TensorSource& tensors, const std::string& module, const AttentionBlockShape& shape,
                     const std::string& owner);

  ContextAttention(WeightLoader& loader, const std::string& module, const AttentionBlockShape& shape,
                   const std::string& owner);

  /// Scratch of one forward, shared by its layers: rows = context rows + block rows.
  struct Scratch {
    Rows kv;     ///< [rows, 2 * kv_cols]
    Rows q;      ///< [block rows, q_cols]
    Rows heads;  ///< [block rows, q_cols]
    Rows gate;   ///< [block rows, heads]
    std::byte* packing;
  };

  /// x: the layer's inputs, `context` context rows, then block rows. Appends the context rows to `cache`, then computes
  /// the sublayer of the block rows: out [block rows, hidden] = o_proj(gate(attention)). `plan` is not used without
  /// block rows.
  void forward(ConstRows x, std::int64_t context, KvCache& cache, KvOverlay& overlay, const AttentionPlan& plan,
               const RopeTable& rope, const Scratch& scratch, Rows out, const ExecContext& exec) const;

 private:
  ContextAttention(WeightLoader& loader, const Specs& specs, const std::string& module,
                   const AttentionBlockShape& shape, const std::string& owner);

  AttentionBlockShape shape_;
  PackedMatrix q_;
  PackedMatrix kv_;
  PackedMatrix o_;
  std::optional<PackedMatrix> gate_;
  QkNorms norms_;
};

}  // namespace drafthorse
