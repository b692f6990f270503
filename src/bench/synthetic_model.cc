#include "bench/synthetic_model.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/random.h"
#include "tensor/element_type.h"

namespace drafthorse {
namespace {

constexpr std::size_t kBlockValues = 65521;  // prime, so that rows of any length differ
constexpr float kSpread = 0.04f;             // of weights: -kSpread to kSpread, about what trained models have

}  // namespace

TargetConfig synthetic_config(std::string_view shape) {
  TargetConfig config;
  config.source = "shape " + std::string(shape);
  config.architecture = "Qwen3ForCausalLM";
  config.family = TargetFamily::kQwen3;
  config.vocab_size = 151936;
  config.num_key_value_heads = 8;
  config.head_dim = 128;
  config.rms_norm_eps = 1e-6;
  config.max_position_embeddings = 4096;
  config.qk_norm = true;
  config.tie_word_embeddings = true;
  if (shape == "0.6b") {
    config.hidden_size = 1024;
    config.num_hidden_layers = 28;
    config.num_attention_heads = 16;
    config.intermediate_size = 3072;
  } else if (shape == "4b") {
    config.hidden_size = 2560;
    config.num_hidden_layers = 36;
    config.num_attention_heads = 32;
    config.intermediate_size = 9728;
  } else {
    throw Error("--shape = " + std::string(shape) + ": unknown; it must be 0.6b or 4b");
  }
  config.rope.theta = 1e6;
  config.rope.rotary_dims = config.head_dim;
  config.layer_types.assign(static_cast<std::size_t>(config.num_hidden_layers), LayerType::kFullAttention);
  config.sliding_windows.assign(static_cast<std::size_t>(config.num_hidden_layers), 0);
  return config;
}

SyntheticTensors::SyntheticTensors(const TargetConfig& config) : path_(config.source) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t q = std::int64_t{config.num_attention_heads} * config.head_dim;
  const std::int64_t kv = std::int64_t{config.num_key_value_heads} * config.head_dim;
  const std::int64_t inner = config.intermediate_size;
  const std::int64_t largest = std::max({config.vocab_size * hidden, q * hidden, inner * hidden});
  values_ = AlignedBuffer(static_cast<std::size_t>(largest) * sizeof(std::uint16_t));
  ones_ = AlignedBuffer(static_cast<std::size_t>(hidden) * sizeof(std::uint16_t));
  std::vector<std::uint16_t> block(kBlockValues);
  for (std::size_t i = 0; i < block.size(); ++i) {
    const double uniform = static_cast<double>(splitmix64(7, i) >> 11) * 0x1p-53;
    block[i] = float_to_bf16(kSpread * static_cast<float>(2 * uniform - 1));
  }
  const std::size_t block_bytes = block.size() * sizeof(std::uint16_t);
  for (std::size_t at = 0; at < values_.size(); at += block_bytes) {
    std::memcpy(values_.data() + at, block.data(), std::min(block_bytes, values_.size() - at));
  }
  std::fill_n(ones_.as<std::uint16_t>(), hidden, float_to_bf16(1.0f));

  add("model.embed_tokens.weight", {config.vocab_size, hidden});
  add("model.norm.weight", {hidden});
  for (int i = 0; i < config.num_hidden_layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    add(layer + "input_layernorm.weight", {hidden});
    add(layer + "self_attn.q_proj.weight", {q, hidden});
    add(layer + "self_attn.k_proj.weight", {kv, hidden});
    add(layer + "self_attn.v_proj.weight", {kv, hidden});
    add(layer + "self_attn.o_proj.weight", {hidden, q});
    add(layer + "self_attn.q_norm.weight", {config.head_dim});
    add(layer + "self_attn.k_norm.weight", {config.head_dim});
    add(layer + "post_attention_layernorm.weight", {hidden});
    add(layer + "mlp.gate_proj.weight", {inner, hidden});
    add(layer + "mlp.up_proj.weight", {inner, hidden});
    add(layer + "mlp.down_proj.weight", {hidden, inner});
  }
}

void SyntheticTensors::add(const std::string& name, std::vector<std::int64_t> shape) {
  const AlignedBuffer& from = shape.size() == 1 ? ones_ : values_;
  TensorView view{name, ElementType::kBF16, std::move(shape), {}, nullptr};
  view.bytes = {from.data(), static_cast<std::size_t>(view.elements()) * sizeof(std::uint16_t)};
  views_.emplace(name, std::move(view));
}

const TensorView* SyntheticTensors::find(std::string_view name) const {
  const auto entry = views_.find(name);
  return entry == views_.end() ? nullptr : &entry->second;
}

std::vector<std::string> SyntheticTensors::names() const {
  std::vector<std::string> all;
  for (const auto& [name, view] : views_) all.push_back(name);
  return all;
}

}  // namespace drafthorse
