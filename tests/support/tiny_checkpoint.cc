#include "support/tiny_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <stdexcept>

#include "base/random.h"

namespace drafthorse {
namespace {

constexpr float kSqrt3 = 1.7320508f;  // uniform in [-sqrt 3, sqrt 3) has variance 1

std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0;
  for (const char c : text) hash = mix64(hash + static_cast<unsigned char>(c) + 1);
  return hash;
}

std::int64_t product(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

void append(std::string& bytes, ElementType type, float value) {
  if (type == ElementType::kF32) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    return;
  }
  const std::uint16_t half = type == ElementType::kF16 ? float_to_f16(value) : float_to_bf16(value);
  bytes.append(reinterpret_cast<const char*>(&half), sizeof half);
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  if (!file) throw std::runtime_error("cannot write " + path);
}

/// Norms, attention and MLP of decoder layers, as both networks name them.
struct LayerNames {
  std::string prefix;
  std::uint64_t seed;
};

void add_linear(TinyCheckpoint& checkpoint, const LayerNames& names, const std::string& module, int rows, int cols) {
  const float spread = 1.5f * kSqrt3 / std::sqrt(static_cast<float>(cols));
  checkpoint.add(names.prefix + module + ".weight", {rows, cols}, 0.0f, spread, names.seed);
}

template <typename Shape>
void add_layer(TinyCheckpoint& checkpoint, const Shape& shape, const LayerNames& names, bool qk_norm) {
  const int q = shape.heads * shape.head_dim;
  const int kv = shape.kv_heads * shape.head_dim;
  for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) {
    checkpoint.add(names.prefix + norm + ".weight", {shape.hidden}, 1.0f, 0.4f, names.seed);
  }
  add_linear(checkpoint, names, "self_attn.q_proj", q, shape.hidden);
  add_linear(checkpoint, names, "self_attn.k_proj", kv, shape.hidden);
  add_linear(checkpoint, names, "self_attn.v_proj", kv, shape.hidden);
  add_linear(checkpoint, names, "self_attn.o_proj", shape.hidden, q);
  if (qk_norm) {
    for (const char* norm : {"q_norm", "k_norm"}) {
      checkpoint.add(names.prefix + "self_attn." + norm + ".weight", {shape.head_dim}, 1.0f, 0.4f, names.seed);
    }
  }
  add_linear(checkpoint, names, "mlp.gate_proj", shape.intermediate, shape.hidden);
  add_linear(checkpoint, names, "mlp.up_proj", shape.intermediate, shape.hidden);
  add_linear(checkpoint, names, "mlp.down_proj", shape.hidden, shape.intermediate);
}

template <typename Shape>
Json common_config(const Shape& shape, const std::string& architecture) {
  Json config;
  config["architectures"] = Json::array({architecture});
  config["hidden_size"] = shape.hidden;
  config["intermediate_size"] = shape.intermediate;
  config["num_hidden_layers"] = shape.layers;
  config["num_attention_heads"] = shape.heads;
  config["num_key_value_heads"] = shape.kv_heads;
  config["head_dim"] = shape.head_dim;
  config["vocab_size"] = shape.vocab;
  config["rms_norm_eps"] = 1e-6;
  config["rope_theta"] = 10000.0;
  config["hidden_act"] = "silu";
  if (!shape.windows.empty()) {
    Json types = Json::array();
    for (const int window : shape.windows) types.push_back(window == 0 ? "full_attention" : "sliding_attention");
    config["layer_types"] = types;
    config["use_sliding_window"] = true;
    config["sliding_window"] = *std::max_element(shape.windows.begin(), shape.windows.end());
  }
  return config;
}

}  // namespace

void TinyCheckpoint::add(const std::string& name, std::vector<std::int64_t> shape, float centre, float spread,
                         std::uint64_t seed) {
  TinyTensor tensor{std::move(shape), {}};
  const std::uint64_t key = mix64(seed) ^ hash_of(name);
  const auto count = static_cast<std::uint64_t>(product(tensor.shape));
  for (std::uint64_t i = 0; i < count; ++i) {
    const float unit = static_cast<float>(splitmix64(key, i) >> 40) * 0x1p-23f - 1.0f;
    tensor.values.push_back(centre + spread * unit);
  }
  tensors[name] = std::move(tensor);
}

TinyTensor TinyCheckpoint::slice(const std::string& name, std::int64_t begin, std::int64_t end) const {
  const TinyTensor& whole = tensors.at(name);
  const std::int64_t width = product(whole.shape) / whole.shape[0];
  TinyTensor part{whole.shape, {whole.values.begin() + begin * width, whole.values.begin() + end * width}};
  part.shape[0] = end - begin;
  return part;
}

void TinyCheckpoint::fuse(const std::vector<std::string>& parts, const std::string& name) {
  TinyTensor fused = tensors.at(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const TinyTensor& part = tensors.at(parts[i]);
    fused.shape[0] += part.shape[0];
    fused.values.insert(fused.values.end(), part.values.begin(), part.values.end());
  }
  for (const std::string& part : parts) tensors.erase(part);
  tensors[name] = std::move(fused);
}

void TinyCheckpoint::rename(const std::string& from, const std::string& to) {
  auto node = tensors.extract(from);
  if (node.empty()) throw std::runtime_error("no tensor " + from);
  node.key() = to;
  tensors.insert(std::move(node));
}

void TinyCheckpoint::write(const std::string& folder, ElementType type) const {
  Json header;
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t begin = data.size();
    for (const float value : tensor.values) append(data, type, value);
    header[name] = {
        {"dtype", std::string(element_name(type))}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  std::string length;
  for (int i = 0; i < 8; ++i) length.push_back(static_cast<char>((text.size() >> (8 * i)) & 0xff));
  write_file(folder + "/model.safetensors", length + text + data);
  write_file(folder + "/config.json", config.dump(1));
}

TinyCheckpoint tiny_target(const TinyTargetShape& shape) {
  TinyCheckpoint checkpoint;
  TinyTargetShape real = shape;
  if (shape.qwen2) real.head_dim = shape.hidden / shape.heads;
  checkpoint.config = common_config(real, shape.qwen2 ? "Qwen2ForCausalLM" : "Qwen3ForCausalLM");
  checkpoint.config["max_position_embeddings"] = shape.context;
  checkpoint.config["tie_word_embeddings"] = shape.tied;
  checkpoint.config["eos_token_id"] = 2;
  checkpoint.add("model.embed_tokens.weight", {shape.vocab, shape.hidden}, 0.0f, 0.4f, shape.seed);
  if (!shape.tied) checkpoint.add("lm_head.weight", {shape.vocab, shape.hidden}, 0.0f, 0.4f, shape.seed);
  checkpoint.add("model.norm.weight", {shape.hidden}, 1.0f, 0.4f, shape.seed);
  for (int i = 0; i < shape.layers; ++i) {
    const LayerNames names{"model.layers." + std::to_string(i) + ".", shape.seed};
    add_layer(checkpoint, real, names, !shape.qwen2);
    if (!shape.qwen2) continue;
    for (const char* module : {"q_proj", "k_proj", "v_proj"}) {
      const std::int64_t rows = (module[0] == 'q' ? real.heads : real.kv_heads) * real.head_dim;
      checkpoint.add(names.prefix + "self_attn." + module + ".bias", {rows}, 0.0f, 0.5f, shape.seed);
    }
  }
  return checkpoint;
}

TinyCheckpoint tiny_draft(const TinyDraftShape& shape) {
  TinyCheckpoint checkpoint;
  checkpoint.config = common_config(shape, shape.architecture);
  checkpoint.config["num_target_layers"] = shape.target_layers;
  checkpoint.config["block_size"] = shape.block_size;
  checkpoint.config["dflash_config"] = {{"mask_token_id", shape.mask_token_id}, {"target_layer_ids", shape.taps}};
  const auto features = static_cast<int>(shape.taps.size()) * shape.hidden;
  add_linear(checkpoint, {"", shape.seed}, "fc", shape.hidden, features);
  for (const char* norm : {"hidden_norm", "norm"})
    checkpoint.add(std::string(norm) + ".weight", {shape.hidden}, 1.0f, 0.4f, shape.seed);
  for (int i = 0; i < shape.layers; ++i)
    add_layer(checkpoint, shape, {"layers." + std::to_string(i) + ".", shape.seed}, true);
  return checkpoint;
}

}  // namespace drafthorse
