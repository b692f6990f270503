#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/weight_type.h"

namespace drafthorse {

inline constexpr std::int64_t kMostBlockCols = 256;

/// One row's block of a quantised type, taken apart. Value of element i:
///   q8_0              d * q[i]
///   q4_0, q5_0        d * (q[i] - z), z = 8 or 16
///   q4_1, q5_1        d * q[i] + m
///   q4_k, q5_k        d * scale[i / 32] * q[i] - m * offset[i / 32]
///   q6_k              d * scale[i / 16] * (q[i] - 32)
struct QuantizedBlock {
  std::uint16_t d = 0;  ///< f16
  std::uint16_t m = 0;  ///< f16
  std::int16_t q[kMostBlockCols] = {};
  std::int16_t scale[16] = {};
  std::int16_t offset[8] = {};
};

/// A block as a GGUF file has it: file_block_bytes(type) bytes, little endian, any alignment.
QuantizedBlock read_block(WeightType type, const std::byte* bytes);
/// Whether d and m are finite.
bool is_finite(const QuantizedBlock& block);

/// Puts a block into row r (0 to 31) of the tile's block at `tile_block`, which holds block_groups(type) groups.
void place_block(WeightType type, const QuantizedBlock& block, std::int64_t r, std::byte* tile_block);
/// The value at row r, column k (of the block) of a tile's block, rounded to float32 once. The oracle of place_block.
float value_in_tile(WeightType type, const std::byte* tile_block, std::int64_t r, std::int64_t k);

}  // namespace drafthorse
