#include <cstring>

#include "base/check.h"
#include "quant/bit_format.h"
#include "quant/quantized_block.h"
#include "tensor/element_type.h"

namespace drafthorse {
namespace {

constexpr std::size_t kQ8ScaleBytes = kTileRows * 2;

void put_half(std::byte* halves, std::int64_t r, std::uint16_t bits) { std::memcpy(halves + r * 2, &bits, 2); }

float half_at(const std::byte* halves, std::int64_t r) {
  std::uint16_t bits;
  std::memcpy(&bits, halves + r * 2, 2);
  return f16_to_float(bits);
}

/// Places 32 integers of row r in a group. Bytes are written whole, so a block may be placed over another.
template <typename Format>
void place_group(const std::int16_t* q, std::int64_t r, std::byte* group) {
  std::byte* low = group + Format::kLowStart + r * 4;
  for (std::int64_t pair = 0; pair < 4; ++pair, low += kTileRows * 4) {
    for (std::int64_t j = 0; j < 4; ++j) {
      low[j] = static_cast<std::byte>((q[pair * 8 + j] & 15) | (q[pair * 8 + 4 + j] & 15) << 4);
    }
  }
  constexpr int kBits = Format::kHighBits;
  if constexpr (kBits > 0) {
    std::byte* high = group + Format::kHighStart + r * 4;
    constexpr std::int64_t kSteps = 8 / kBits;  // whose bits share a byte
    for (std::int64_t first = 0; first < 8; first += kSteps, high += kTileRows * 4) {
      for (std::int64_t j = 0; j < 4; ++j) {
        int bits = 0;
        for (std::int64_t s = 0; s < kSteps; ++s) bits |= (q[(first + s) * 4 + j] >> 4) << (s * kBits);
        high[j] = static_cast<std::byte>(bits);
      }
    }
  }
}

template <typename Format>
int integer_in_group(const std::byte* group, std::int64_t r, std::int64_t k) {
  const std::int64_t step = k / 4;
  const std::int64_t place = r * 4 + k % 4;
  const std::byte low = group[Format::kLowStart + static_cast<std::size_t>(step / 2 * kTileRows * 4 + place)];
  int q = std::to_integer<int>(low) >> (step % 2 * 4) & 15;
  if constexpr (Format::kHighBits == 1) {
    q |= (std::to_integer<int>(group[Format::kHighStart + static_cast<std::size_t>(place)]) >> step & 1) << 4;
  } else if constexpr (Format::kHighBits == 2) {
    const std::byte high = group[Format::kHighStart + static_cast<std::size_t>(step / 4 * kTileRows * 4 + place)];
    q |= (std::to_integer<int>(high) >> (step % 4 * 2) & 3) << 4;
  }
  return q;
}

template <typename Format>
void place_bits(const QuantizedBlock& block, std::int64_t r, std::byte* tile_block) {
  put_half(tile_block, r, block.d);
  if constexpr (Format::kAffine) put_half(tile_block + Format::kOffsetStart, r, block.m);
  std::byte* group = tile_block + Format::kHeaderBytes;
  for (std::int64_t g = 0; g < Format::kBlockGroups; ++g, group += Format::kGroupBytes) {
    if constexpr (Format::kTwoLevel) {
      group[r] = static_cast<std::byte>(block.scale[Format::kAffine ? g : 2 * g]);
      group[kTileRows + r] = static_cast<std::byte>(Format::kAffine ? block.offset[g] : block.scale[2 * g + 1]);
    }
    place_group<Format>(block.q + g * kGroup, r, group);
  }
}

template <typename Format>
float value_of_bits(const std::byte* tile_block, std::int64_t r, std::int64_t k) {
  const std::byte* group =
      tile_block + Format::kHeaderBytes + static_cast<std::size_t>(k / kGroup) * Format::kGroupBytes;
  const auto q = static_cast<float>(integer_in_group<Format>(group, r, k % kGroup) - Format::kZero);
  float scale = half_at(tile_block, r);
  float offset = 0.0f;
  if constexpr (Format::kAffine) offset = half_at(tile_block + Format::kOffsetStart, r);
  if constexpr (Format::kTwoLevel && Format::kAffine) {
    scale *= static_cast<float>(std::to_integer<int>(group[r]));
    offset *= -static_cast<float>(std::to_integer<int>(group[kTileRows + r]));
  } else if constexpr (Format::kTwoLevel) {
    scale *= static_cast<float>(static_cast<std::int8_t>(group[k % kGroup / 16 * kTileRows + r]));
  }
  // Products of f16 and these small integers are exact in float32.
  return Format::kAffine ? scale * q + offset : scale * q;
}

}  // namespace

bool is_finite(const QuantizedBlock& block) {
  constexpr std::uint16_t kExponent = 0x7c00;
  return (block.d & kExponent) != kExponent && (block.m & kExponent) != kExponent;
}

void place_block(WeightType type, const QuantizedBlock& block, std::int64_t r, std::byte* tile_block) {
  if (type == WeightType::kQ8_0) {
    put_half(tile_block, r, block.d);
    std::byte* values = tile_block + kQ8ScaleBytes + r * 4;
    for (std::int64_t k = 0; k < kGroup; ++k) {
      values[k / 4 * kTileRows * 4 + k % 4] = static_cast<std::byte>(block.q[k] + 128);
    }
    return;
  }
  const bool placed = with_bit_format(type, [&]<typename Format>(Format) { place_bits<Format>(block, r, tile_block); });
  DRAFTHORSE_CHECK(placed, weight_name(type) << " has no blocks");
}

float value_in_tile(WeightType type, const std::byte* tile_block, std::int64_t r, std::int64_t k) {
  float value = 0.0f;
  if (type == WeightType::kQ8_0) {
    const int q =
        std::to_integer<int>(tile_block[kQ8ScaleBytes + static_cast<std::size_t>((k / 4 * kTileRows + r) * 4 + k % 4)]);
    return half_at(tile_block, r) * static_cast<float>(q - 128);
  }
  const bool found =
      with_bit_format(type, [&]<typename Format>(Format) { value = value_of_bits<Format>(tile_block, r, k); });
  DRAFTHORSE_CHECK(found, weight_name(type) << " has no blocks");
  return value;
}

}  // namespace drafthorse
