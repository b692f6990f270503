#include "model/layers/context_attention.h"

#include <span>

#include "model/layers/linear_input.h"
#include "ops/activation.h"

namespace drafthorse {

ContextAttention::Specs ContextAttention::specs(const TensorSource& tensors, const std::string& module,
                                                const AttentionBlockShape& shape, const std::string& owner) {
  const std::int64_t q = shape.q_cols();
  const std::int64_t kv = shape.kv_cols();
  Specs specs;
  const std::string fused = module + ".qkv_proj";
  if (tensors.has(fused + ".weight")) {
    specs.q.parts = {{.module = fused, .rows = q, .first = 0, .total = q + 2 * kv}};
    specs.kv.parts = {{.module = fused, .rows = 2 * kv, .first = q, .total = q + 2 * kv}};
  } else {
    specs.q.parts = {{.module = module + ".q_proj", .rows = q}};
    specs.kv.parts = {{.module = module + ".k_proj", .rows = kv}, {.module = module + ".v_proj", .rows = kv}};
  }
  specs.o.parts = {{.module = module + ".o_proj", .rows = shape.hidden}};
  if (tensors.has(module + ".g_proj.weight")) {
    specs.gate = LinearSpec{};
    specs.gate->parts = {{.module = module + ".g_proj", .rows = shape.heads}};
  }
  for (LinearSpec* spec : {&specs.q, &specs.kv, &specs.o, specs.gate ? &*specs.gate : nullptr}) {
    if (spec == nullptr) continue;
    spec->cols = spec == &specs.o ? q : shape.hidden;
    spec->bias = spec == &specs.o ? shape.o_bias : shape.qkv_bias;
    spec->owner = owner;
  }
  return specs;
}

ContextAttention::ContextAttention(WeightLoader& loader, const std::string& module, const AttentionBlockShape& shape,
                                   const std::string& owner)
    : ContextAttention(loader, specs(loader.tensors(), module, shape, owner), module, shape, owner) {}

ContextAttention::ContextAttention(WeightLoader& loader, const Specs& specs, const std::string& module,
                                   const AttentionBlockShape& shape, const std::string& owner)
    : shape_(shape), q_(loader.linear(specs.q)), kv_(loader.linear(specs.kv)), o_(loader.linear(specs.o)) {
  if (specs.gate) gate_ = loader.linear(*specs.gate);
  norms_ = load_qk_norms(loader, module, shape, owner);
}

void ContextAttention::forward(ConstRows x, std::int64_t context, KvCache& cache, KvOverlay& overlay,
                               const AttentionPlan& plan, const RopeTable& rope, const Scratch& scratch, Rows out,
                               const ExecContext& exec) const {
  const HeadSteps steps = head_steps(shape_, norms_, rope);
  LinearInput(x, scratch.packing, exec).into(kv_, scratch.kv);
  const Rows k{scratch.kv.data, x.rows, shape_.kv_cols(), scratch.kv.stride};
  const Rows v{scratch.kv.data + shape_.kv_cols(), x.rows, shape_.kv_cols(), scratch.kv.stride};
  if (context > 0) {
    const HeadRun run{.rows = context, .position = cache.offset(), .pages = cache.reserve(context)};
    finish_heads(steps, {&run, 1}, {}, k.slice(0, context), v.slice(0, context), exec);
    cache.advance(context);
  }
  const std::int64_t block = x.rows - context;
  if (block == 0) return;

  LinearInput block_rows(x.slice(context, x.rows), scratch.packing, exec);
  block_rows.into(q_, scratch.q);
  if (gate_) block_rows.into(*gate_, scratch.gate);
  const HeadRun run{.rows = block, .position = cache.offset(), .pages = overlay.cover(cache, block)};
  finish_heads(steps, {&run, 1}, scratch.q, k.slice(context, x.rows), v.slice(context, x.rows), exec);
  const KvPages pages = overlay.pages();
  plan.run(scratch.q, &pages, scratch.heads, exec);
  if (gate_) softplus_gate(scratch.gate, scratch.heads, exec);
  LinearInput(scratch.heads, scratch.packing, exec).into(o_, out);
}

}  // namespace drafthorse
