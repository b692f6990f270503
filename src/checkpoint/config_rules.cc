#include "checkpoint/config_rules.h"

#include <initializer_list>
#include <limits>

namespace drafthorse {

DeclaredArchitecture declared_architecture(const JsonObject& top) {
  if (const auto names = top.strings("architectures"); names && !names->empty())
    return {names->front(), "architectures"};
  if (const auto type = top.string("model_type")) return {*type, "model_type"};
  top.fail("architectures", "missing, and there is no model_type either; cannot tell which network this is");
}

void refuse_quantization(const JsonObject& config) {
  const std::string advice = "; use a checkpoint with BF16, F16 or F32 weights";
  if (const auto scheme = config.object("quantization_config"); scheme && scheme->has("quant_method")) {
    scheme->fail("quant_method", "quantised weights of this method are not supported" + advice);
  }
  for (const char* key : {"quantization", "quantization_config"}) {
    if (config.has(key)) config.fail(key, "MLX quantised weights are not supported" + advice);
  }
}

void require_activation(const ConfigKeys& config, const std::string& expected) {
  const auto name = config.string("hidden_act");
  if (name && *name != expected) config.fail("hidden_act", "this architecture is built with \"" + expected + "\" only");
}

void check_sizes(const ConfigKeys& config, const LayerSizes& sizes, std::int64_t vocab_size) {
  if (sizes.num_attention_heads % sizes.num_key_value_heads != 0) {
    config.fail("num_key_value_heads", "num_attention_heads = " + std::to_string(sizes.num_attention_heads) +
                                           " is not a multiple of " + std::to_string(sizes.num_key_value_heads));
  }
  if (sizes.head_dim % 2 != 0) {
    config.fail("head_dim", std::to_string(sizes.head_dim) + " is odd; rotary embeddings pair its dimensions");
  }
  const std::int64_t query_width = std::int64_t{sizes.num_attention_heads} * sizes.head_dim;
  if (query_width > kMaxWidth) {
    config.fail("num_attention_heads", "times head_dim = " + std::to_string(sizes.head_dim) + " is " +
                                           std::to_string(query_width) + ", more than " + std::to_string(kMaxWidth));
  }
  const std::int64_t hidden = sizes.hidden_size;
  for (const std::int64_t rows : {vocab_size, std::int64_t{sizes.intermediate_size}, query_width}) {
    if (hidden * rows > kMaxElements) {
      config.fail("hidden_size", "a weight of " + std::to_string(rows) + " x " + std::to_string(hidden) +
                                     " has more than 2^40 elements");
    }
  }
}

std::vector<LayerType> parse_layer_types(const ConfigKeys& config, int layers, const std::vector<LayerType>& absent) {
  const auto names = config.strings("layer_types");
  if (!names) return absent;
  if (names->size() != static_cast<std::size_t>(layers)) {
    config.fail("layer_types",
                "has " + std::to_string(names->size()) + " entries, num_hidden_layers is " + std::to_string(layers));
  }
  std::vector<LayerType> types;
  for (std::size_t i = 0; i < names->size(); ++i) {
    const auto type = layer_type((*names)[i]);
    if (!type) {
      config.fail("layer_types", "entry " + std::to_string(i) + " is " + brief(Json((*names)[i])) +
                                     "; known are full_attention and sliding_attention");
    }
    types.push_back(*type);
  }
  return types;
}

std::vector<int> parse_sliding_windows(const ConfigKeys& config, const std::vector<LayerType>& types) {
  std::vector<int> windows;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] == LayerType::kFullAttention) {
      windows.push_back(0);
      continue;
    }
    const std::int64_t window = config.integer("sliding_window").value_or(0);
    if (window < 1 || window > std::numeric_limits<int>::max()) {
      config.fail("sliding_window",
                  "layer " + std::to_string(i) + " is sliding_attention and needs a window of 1 or more");
    }
    windows.push_back(static_cast<int>(window));
  }
  return windows;
}

}  // namespace drafthorse
