#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace drafthorse {

/// How a linear layer's weights are held in kernel order. The numeric contract of each is in docs/numerics.md.
/// The quantised types hold the values of the GGUF types of the same names exactly. d, m are f16 scales and offsets, q
/// the stored unsigned integers, sc and mn integer scales of one group.
enum class WeightType : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,  ///< int8 in groups of 32 along the input, one f16 scale a group
  kQ4_0,  ///< groups of 32: d * (q - 8)
  kQ4_1,  ///< groups of 32: d * q + m
  kQ5_0,  ///< groups of 32: d * (q - 16)
  kQ5_1,  ///< groups of 32: d * q + m
  kQ4K,   ///< blocks of 256 = 8 groups: d * sc * q - m * mn; q of 4 bits, sc and mn of 6
  kQ5K,   ///< the same with q of 5 bits
  kQ6K,   ///< blocks of 256: d * sc * (q - 32); q of 6 bits, a signed 8-bit sc for each 16
};

inline constexpr std::array kWeightTypes = {WeightType::kF32,  WeightType::kF16,  WeightType::kBF16, WeightType::kQ8_0,
                                            WeightType::kQ4_0, WeightType::kQ4_1, WeightType::kQ5_0, WeightType::kQ5_1,
                                            WeightType::kQ4K,  WeightType::kQ5K,  WeightType::kQ6K};

/// "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k".
std::string_view weight_name(WeightType type);
std::optional<WeightType> weight_type(std::string_view name);
/// All names in the order above, for messages: "f32, f16, ..., q6_k".
std::string weight_names();

/// Output rows of one tile and inputs of one group of the packed layout.
inline constexpr std::int64_t kTileRows = 32;
inline constexpr std::int64_t kGroup = 32;

/// Groups of one block, the unit that stands by itself in the packed stream and in files: 1, or 8 for q4_k, q5_k, q6_k.
std::int64_t block_groups(WeightType type);
/// Groups that a row of `cols` columns takes: padded to whole blocks.
std::int64_t padded_groups(WeightType type, std::int64_t cols);
/// Bytes of one tile's share of a group: those of a block (scales, then data) divided by its groups.
std::size_t group_bytes(WeightType type);

/// Whether GGUF files hold this type in blocks of scales and integers: all but f32, f16 and bf16.
bool is_quantized(WeightType type);
/// Columns and bytes of one row's block in a GGUF file. Only for quantised types.
std::int64_t file_block_cols(WeightType type);
std::size_t file_block_bytes(WeightType type);

}  // namespace drafthorse
