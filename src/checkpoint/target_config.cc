#include "checkpoint/target_config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "checkpoint/config_keys.h"
#include "checkpoint/config_rules.h"
#include "checkpoint/folder.h"

namespace drafthorse {
namespace {

/// What distinguishes a family as far as its config goes. A new family is a new line, and an arch file in model/.
struct Family {
  std::string_view architecture;
  std::string_view model_type;
  TargetFamily family;
  std::optional<int> head_dim;  ///< when absent from the file; nothing: hidden_size / num_attention_heads
  bool always_qkv_bias;         ///< attention_bias does not exist; q, k and v have a bias and o has none
  bool qk_norm;
};

constexpr std::array<Family, 2> kFamilies = {{
    {"Qwen2ForCausalLM", "qwen2", TargetFamily::kQwen2, std::nullopt, true, false},
    {"Qwen3ForCausalLM", "qwen3", TargetFamily::kQwen3, 128, false, true},
}};

const Family& find_family(const JsonObject& top) {
  const DeclaredArchitecture declared = declared_architecture(top);
  std::string supported;
  for (const Family& family : kFamilies) {
    const bool by_name = declared.key == "architectures";
    if (declared.name == (by_name ? family.architecture : family.model_type)) return family;
    supported += (supported.empty() ? "" : ", ") + std::string(family.architecture);
  }
  top.fail(declared.key, "not supported as a target; supported are " + supported);
}

int parse_head_dim(const ConfigKeys& config, const Family& family, int hidden_size, int heads) {
  if (config.has("head_dim") || family.head_dim) return config.positive("head_dim", kMaxWidth, family.head_dim);
  if (hidden_size % heads != 0) {
    config.fail("head_dim", "absent, and hidden_size = " + std::to_string(hidden_size) +
                                " is not a multiple of num_attention_heads = " + std::to_string(heads));
  }
  return hidden_size / heads;
}

/// The upper layers slide when use_sliding_window is true and a window is set; layer_types overrides which ones.
std::vector<LayerType> parse_qwen_layer_types(const ConfigKeys& config, int layers) {
  const std::optional<bool> use = config.boolean("use_sliding_window");
  std::vector<LayerType> types(static_cast<std::size_t>(layers), LayerType::kFullAttention);
  if (use.value_or(false) && config.has("sliding_window")) {
    const std::int64_t first = config.integer("max_window_layers").value_or(28);
    if (first < 0) config.fail("max_window_layers", "must be 0 or more");
    for (std::int64_t i = first; i < layers; ++i) types[static_cast<std::size_t>(i)] = LayerType::kSlidingAttention;
  }
  types = parse_layer_types(config, layers, types);
  const bool slides = std::find(types.begin(), types.end(), LayerType::kSlidingAttention) != types.end();
  if (slides && use && !*use) config.fail("layer_types", "has sliding layers although use_sliding_window is false");
  return types;
}

}  // namespace

TargetConfig parse_target_config(const Json& config, const std::string& source) {
  const JsonObject top(config, source);
  const Family& family = find_family(top);
  const std::optional<JsonObject> text = top.object("text_config");
  const ConfigKeys keys({text ? *text : top});
  refuse_quantization(top);
  refuse_quantization(keys.objects().front());

  TargetConfig target;
  target.source = source;
  target.architecture = declared_architecture(top).name;
  target.family = family.family;
  target.hidden_size = keys.positive("hidden_size", kMaxWidth);
  target.num_hidden_layers = keys.positive("num_hidden_layers", kMaxLayers);
  target.vocab_size = keys.positive("vocab_size", kMaxVocab);
  target.num_attention_heads = keys.positive("num_attention_heads", kMaxWidth);
  target.num_key_value_heads = keys.positive("num_key_value_heads", kMaxWidth, target.num_attention_heads);
  target.head_dim = parse_head_dim(keys, family, target.hidden_size, target.num_attention_heads);
  target.intermediate_size = keys.positive("intermediate_size", kMaxWidth);
  check_sizes(keys,
              {target.hidden_size, target.num_attention_heads, target.num_key_value_heads, target.head_dim,
               target.intermediate_size},
              target.vocab_size);
  target.rms_norm_eps = keys.positive_number("rms_norm_eps", 1e-6);
  target.max_position_embeddings = keys.positive("max_position_embeddings", std::numeric_limits<int>::max(), 32768);
  target.rope = parse_rope(keys, target.head_dim, {.theta = 10000.0});
  require_activation(keys, "silu");

  const bool bias = !family.always_qkv_bias && keys.boolean("attention_bias").value_or(false);
  target.attention_bias_qkv = family.always_qkv_bias || bias;
  target.attention_bias_o = bias;
  target.qk_norm = family.qk_norm;
  target.tie_word_embeddings = ConfigKeys({keys.objects().front(), top}).boolean("tie_word_embeddings");
  target.layer_types = parse_qwen_layer_types(keys, target.num_hidden_layers);
  target.sliding_windows = parse_sliding_windows(keys, target.layer_types);
  return target;
}

TargetConfig read_target_config(const std::string& folder) {
  const std::string file = open_model_folder(folder).config;
  return parse_target_config(read_json_file(file), file);
}

}  // namespace drafthorse
