#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace drafthorse {

/// How a linear layer's weights are held in kernel order. The numeric contract of each is in docs/numerics.md.
enum class WeightType : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,  ///< int8 in groups of 32 along the input, one f16 scale a group
};

/// "f32", "f16", "bf16", "q8_0".
std::string_view weight_name(WeightType type);
std::optional<WeightType> weight_type(std::string_view name);

/// Output rows of one tile and inputs of one group of the packed layout.
inline constexpr std::int64_t kTileRows = 32;
inline constexpr std::int64_t kGroup = 32;

/// Bytes of one (tile, group) block: scales, then data.
std::size_t group_bytes(WeightType type);

}  // namespace drafthorse
