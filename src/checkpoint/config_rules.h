#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/config_keys.h"
#include "checkpoint/layer_type.h"

namespace drafthorse {

/// Limits that no published model comes near; they keep shapes inside 64-bit arithmetic and refuse absurd files early.
inline constexpr std::int64_t kMaxLayers = 1024;
inline constexpr std::int64_t kMaxVocab = std::int64_t{1} << 24;
inline constexpr std::int64_t kMaxWidth = std::int64_t{1} << 24;
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;  ///< of one tensor

/// What a config says it is.
struct DeclaredArchitecture {
  std::string name;
  std::string key;  ///< where it stood: "architectures" or "model_type"
};

/// The first entry of architectures, else model_type. Throws Error when neither says anything.
DeclaredArchitecture declared_architecture(const JsonObject& top);

/// Throws Error naming key and method when the weights are stored quantised in a way that is not read here.
void refuse_quantization(const JsonObject& config);
/// Throws Error when hidden_act is present and not `expected`.
void require_activation(const ConfigKeys& config, const std::string& expected);

/// The sizes that every attention layer and its feed-forward part are made of.
struct LayerSizes {
  int hidden_size = 0;
  int num_attention_heads = 0;
  int num_key_value_heads = 0;
  int head_dim = 0;
  int intermediate_size = 0;
};
/// Throws Error unless query heads are a multiple of key-value heads, head_dim is even, and every weight made of these
/// sizes and of `vocab_size` (0: unknown) stays within kMaxElements.
void check_sizes(const ConfigKeys& config, const LayerSizes& sizes, std::int64_t vocab_size);

/// layer_types, one per layer; every layer `absent` when the key is. Throws Error for another length or an unknown
/// entry.
std::vector<LayerType> parse_layer_types(const ConfigKeys& config, int layers, const std::vector<LayerType>& absent);
/// sliding_window in every sliding layer, 0 in the others. Throws Error when a layer slides and the window is not
/// positive.
std::vector<int> parse_sliding_windows(const ConfigKeys& config, const std::vector<LayerType>& types);

}  // namespace drafthorse
