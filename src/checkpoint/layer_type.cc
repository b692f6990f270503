#include "checkpoint/layer_type.h"

namespace drafthorse {

std::optional<LayerType> layer_type(std::string_view name) {
  for (const LayerType type : {LayerType::kFullAttention, LayerType::kSlidingAttention}) {
    if (layer_type_name(type) == name) return type;
  }
  return std::nullopt;
}

std::string_view layer_type_name(LayerType type) {
  return type == LayerType::kFullAttention ? "full_attention" : "sliding_attention";
}

}  // namespace drafthorse
