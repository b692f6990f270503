#include "model/layers/attention_block.h"

#include <cmath>

#include "model/layers/linear_input.h"

namespace drafthorse {
namespace {

/// Columns [first, first + count) of x.
Rows columns(Rows x, std::int64_t first, std::int64_t count) { return {x.data + first, x.rows, count, x.stride}; }

const float* values_or_null(const AlignedBuffer& buffer) { return buffer.size() == 0 ? nullptr : buffer.as<float>(); }

}  // namespace

QkNorms load_qk_norms(WeightLoader& loader, const std::string& module, const AttentionBlockShape& shape,
                      const std::string& owner) {
  if (!shape.qk_norm) return {};
  return {loader.vector(module + ".q_norm.weight", shape.kv.head_dim, owner),
          loader.vector(module + ".k_norm.weight", shape.kv.head_dim, owner)};
}

HeadSteps head_steps(const AttentionBlockShape& shape, const QkNorms& norms, const RopeTable& rope) {
  return {.layout = shape.kv,
          .heads = shape.heads,
          .q_norm = values_or_null(norms.q),
          .k_norm = values_or_null(norms.k),
          .norm_eps = shape.norm_eps,
          .rope = &rope};
}

AttentionShape attention_shape(const AttentionBlockShape& shape) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(shape.kv.head_dim));
  return {.layout = shape.kv, .heads = shape.heads, .scale = static_cast<float>(scale)};
}

LinearSpec AttentionBlock::qkv_spec(const std::string& module, const AttentionBlockShape& shape,
                                    const std::string& owner) {
  return {.parts = {{.module = module + ".q_proj", .rows = shape.q_cols()},
                    {.module = module + ".k_proj", .rows = shape.kv_cols()},
                    {.module = module + ".v_proj", .rows = shape.kv_cols()}},
          .cols = shape.hidden,
          .bias = shape.qkv_bias,
          .owner = owner};
}

LinearSpec AttentionBlock::o_spec(const std::string& module, const AttentionBlockShape& shape,
                                  const std::string& owner) {
  return {.parts = {{.module = module + ".o_proj", .rows = shape.hidden}},
          .cols = shape.q_cols(),
          .bias = shape.o_bias,
          .owner = owner};
}

AttentionBlock::AttentionBlock(WeightLoader& loader, const std::string& module, const AttentionBlockShape& shape,
                               const std::string& owner)
    : shape_(shape),
      qkv_(loader.linear(qkv_spec(module, shape, owner))),
      o_(loader.linear(o_spec(module, shape, owner))),
      norms_(load_qk_norms(loader, module, shape, owner)) {}

void AttentionBlock::forward(ConstRows x, const LayerRows& rows, const RopeTable& rope, const Scratch& scratch,
                             Rows out, const ExecContext& exec) const {
  LinearInput(x, scratch.packing, exec).into(qkv_, scratch.qkv);
  const Rows q = columns(scratch.qkv, 0, shape_.q_cols());
  const Rows k = columns(scratch.qkv, shape_.q_cols(), shape_.kv_cols());
  const Rows v = columns(scratch.qkv, shape_.q_cols() + shape_.kv_cols(), shape_.kv_cols());
  finish_heads(head_steps(shape_, norms_, rope), rows.runs, q, k, v, exec);
  rows.plan->run(q, rows.pages, scratch.heads, exec);
  LinearInput(scratch.heads, scratch.packing, exec).into(o_, out);
}

}  // namespace drafthorse
