#include "model/arch/dflash_layout.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/layers/context_attention.h"
#include "model/layers/swiglu_mlp.h"

namespace drafthorse {
namespace {

std::string part(int layer, const char* what) { return std::string(what) + " of draft layer " + std::to_string(layer); }

}  // namespace

DflashLayout::DflashLayout(const TensorSource& tensors, const DraftConfig& draft, const ModelOptions& how,
                           std::int64_t positions)
    : config(draft),
      options(how),
      names(find_draft_names(tensors)),
      context(positions),
      aux_norms(has_aux_norms(tensors)) {}

std::string DflashLayout::attention_owner(int layer) const {
  return part(layer, "the attention") + " needs q_proj, k_proj and v_proj (or qkv_proj), o_proj, q_norm and k_norm";
}

std::string DflashLayout::norm_owner(int layer) const {
  return part(layer, "the norms") + " are input_layernorm and post_attention_layernorm";
}

AttentionBlockShape DflashLayout::attention() const {
  return {.hidden = config.hidden_size,
          .heads = config.num_attention_heads,
          .kv = {options.kv_type, config.num_key_value_heads, config.head_dim, options.page_positions},
          .norm_eps = static_cast<float>(config.rms_norm_eps),
          .qk_norm = true,
          .qkv_bias = BiasRule::kOptional,
          .o_bias = BiasRule::kOptional};
}

std::vector<LinearSpec> DflashLayout::mlp(int layer) const {
  return SwigluMlp::specs(names.layer(layer) + "mlp", config.hidden_size, config.intermediate_size, BiasRule::kOptional,
                          part(layer, "the MLP") + " needs gate_proj, up_proj and down_proj");
}

LinearSpec DflashLayout::fc() const {
  return {.parts = {{.module = names.fc, .rows = config.hidden_size}},
          .cols = feature_width(),
          .bias = BiasRule::kOptional,
          .owner = "the projection of " + std::to_string(config.taps()) + " taps of width " +
                   std::to_string(config.hidden_size)};
}

std::vector<LinearSpec> DflashLayout::linears(const TensorSource& tensors) const {
  std::vector<LinearSpec> all = {fc()};
  for (int i = 0; i < config.num_hidden_layers; ++i) {
    ContextAttention::Specs specs =
        ContextAttention::specs(tensors, attention_module(i), attention(), attention_owner(i));
    for (LinearSpec* spec : {&specs.q, &specs.kv, &specs.o}) all.push_back(std::move(*spec));
    if (specs.gate) all.push_back(std::move(*specs.gate));
    for (LinearSpec& spec : mlp(i)) all.push_back(std::move(spec));
  }
  return all;
}

std::uint64_t DflashLayout::linear_bytes(const TensorSource& tensors) const {
  std::uint64_t sum = 0;
  for (const LinearSpec& spec : linears(tensors)) sum += held_bytes(spec, tensors, options);
  return sum;
}

bool DflashLayout::has_aux_norms(const TensorSource& tensors) const {
  int count = 0;
  for (const std::string& name : tensors.names()) count += name.starts_with(names.prefix + "aux_hidden_norms.") ? 1 : 0;
  if (count == 0) return false;
  bool complete = count == config.taps();
  for (int t = 0; t < config.taps(); ++t) complete = complete && tensors.has(aux_norm(t));
  if (!complete) {
    throw Error(tensors.path() + ": " + std::to_string(count) + " tensors \"" + names.prefix +
                "aux_hidden_norms.*\" where target_layer_ids has " + std::to_string(config.taps()) +
                " taps; there must be one per tap, numbered from 0, or none");
  }
  return true;
}

Visibility visibility(const DraftConfig& config, int layer) {
  Visibility rule{.causal = config.causal_in(layer)};
  const int window = config.sliding_windows[static_cast<std::size_t>(layer)];
  if (window > 0) rule.reach = config.window_inclusive ? window : window - 1;
  return rule;
}

AttentionPlan block_plan(const Visibility& rule, const AttentionShape& shape, std::int64_t first, std::int64_t rows,
                         Arena& scratch, const ExecContext& exec) {
  auto* begin = scratch.array<std::int64_t>(static_cast<std::size_t>(rows));
  auto* end = scratch.array<std::int64_t>(static_cast<std::size_t>(rows));
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t position = first + r;
    begin[r] = 0;
    end[r] = rule.causal ? position + 1 : first + rows;
    if (rule.reach >= 0) {
      begin[r] = std::max<std::int64_t>(0, position - rule.reach);
      end[r] = std::min(end[r], position + rule.reach + 1);
    }
  }
  const QueryRun run{0, rows};
  return AttentionPlan(shape, {&run, 1}, begin, end, scratch, exec);
}

}  // namespace drafthorse
