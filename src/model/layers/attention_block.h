#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/layers/causal_batch.h"
#include "model/layers/weight_loader.h"
#include "ops/exec_context.h"
#include "ops/heads.h"
#include "quant/packed_matrix.h"
#include "tensor/aligned_buffer.h"
#include "tensor/kv_layout.h"

namespace drafthorse {

/// What a grouped-query attention sublayer looks like.
struct AttentionBlockShape {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  KvLayout kv;
  float norm_eps = 0.0f;
  bool qk_norm = false;  ///< RMS norm of each query and key head before the rotation
  BiasRule qkv_bias = BiasRule::kNone;
  BiasRule o_bias = BiasRule::kNone;

  std::int64_t q_cols() const { return heads * kv.head_dim; }
  std::int64_t kv_cols() const { return kv.kv_heads * kv.head_dim; }
};

/// The norms of query and key heads ("<module>.q_norm.weight"); empty without.
struct QkNorms {
  AlignedBuffer q;
  AlignedBuffer k;
};
QkNorms load_qk_norms(WeightLoader& loader, const std::string& module, const AttentionBlockShape& shape,
                      const std::string& owner);

/// HeadSteps of a block with these norms.
HeadSteps head_steps(const AttentionBlockShape& shape, const QkNorms& norms, const RopeTable& rope);
/// Attention as such a block does it: scores scaled by head_dim^-0.5.
AttentionShape attention_shape(const AttentionBlockShape& shape);

/// Causal attention with q, k and v stacked into one matrix: o_proj(attention(rope(norm(q_proj x)), ..)).
class AttentionBlock {
 public:
  static LinearSpec qkv_spec(const std::string& module, const AttentionBlockShape& shape, const std::string& owner);
  static LinearSpec o_spec(const std::string& module, const AttentionBlockShape& shape, const std::string& owner);
  /// Tensors under "<module>.".
  AttentionBlock(WeightLoader& loader, const std::string& module, const AttentionBlockShape& shape,
                 const std::string& owner);

  /// Scratch of one forward, shared by its layers.
  struct Scratch {
    Rows qkv;    ///< [rows, q_cols + 2 * kv_cols]
    Rows heads;  ///< [rows, q_cols]
    std::byte* packing;
  };
  /// out = the sublayer of x. Writes the rows' keys and values to the pages.
  void forward(ConstRows x, const LayerRows& rows, const RopeTable& rope, const Scratch& scratch, Rows out,
               const ExecContext& exec) const;

 private:
  AttentionBlockShape shape_;
  PackedMatrix qkv_;
  PackedMatrix o_;
  QkNorms norms_;
};

}  // namespace drafthorse
