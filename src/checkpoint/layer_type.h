#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace drafthorse {

/// What mixes positions in one layer.
enum class LayerType : std::uint8_t {
  kFullAttention,     ///< "full_attention"
  kSlidingAttention,  ///< "sliding_attention"
};

/// Nothing for an unknown spelling.
std::optional<LayerType> layer_type(std::string_view name);
std::string_view layer_type_name(LayerType type);

}  // namespace drafthorse
