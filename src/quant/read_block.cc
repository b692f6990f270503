#include <cstring>

#include "base/check.h"
#include "quant/quantized_block.h"

namespace drafthorse {
namespace {

std::uint16_t half_at(const std::byte* bytes) {
  std::uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return bits;
}

int byte_at(const std::byte* bytes, std::int64_t i) { return std::to_integer<int>(bytes[i]); }

/// Two 4-bit numbers a byte: the low nibbles are elements 0 to 15, the high ones 16 to 31.
void read_low_bits_32(const std::byte* bytes, QuantizedBlock& block) {
  for (int i = 0; i < 16; ++i) {
    block.q[i] = static_cast<std::int16_t>(byte_at(bytes, i) & 15);
    block.q[i + 16] = static_cast<std::int16_t>(byte_at(bytes, i) >> 4);
  }
}

/// Bit i of a little-endian 32-bit number is bit 4 of element i.
void read_fifth_bits_32(const std::byte* bytes, QuantizedBlock& block) {
  for (int i = 0; i < 32; ++i) {
    block.q[i] = static_cast<std::int16_t>(block.q[i] | ((byte_at(bytes, i / 8) >> (i % 8)) & 1) << 4);
  }
}

/// Each 32 bytes hold two groups of 32: the low nibbles, then the high ones.
void read_low_bits_256(const std::byte* bytes, QuantizedBlock& block) {
  for (int i = 0; i < 256; ++i) {
    block.q[i] = static_cast<std::int16_t>((byte_at(bytes, i / 64 * 32 + i % 32) >> (i % 64 / 32 * 4)) & 15);
  }
}

/// 12 bytes: the low 6 bits of the first 4 are scales 0 to 3, of the next 4 offsets 0 to 3; the last 4 have the low 4
/// bits of scale and offset 4 to 7, whose upper 2 bits are those left in the first 8.
void read_six_bit_scales(const std::byte* bytes, QuantizedBlock& block) {
  for (int g = 0; g < 4; ++g) {
    const int first = byte_at(bytes, g);
    const int second = byte_at(bytes, g + 4);
    const int third = byte_at(bytes, g + 8);
    block.scale[g] = static_cast<std::int16_t>(first & 63);
    block.offset[g] = static_cast<std::int16_t>(second & 63);
    block.scale[g + 4] = static_cast<std::int16_t>((third & 15) | (first >> 6) << 4);
    block.offset[g + 4] = static_cast<std::int16_t>((third >> 4) | (second >> 6) << 4);
  }
}

void read_q6_k(const std::byte* bytes, QuantizedBlock& block) {
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int quarter = i % 128 / 32;
    const int low = byte_at(bytes, half * 64 + quarter % 2 * 32 + i % 32) >> (quarter / 2 * 4) & 15;
    const int high = byte_at(bytes, 128 + half * 32 + i % 32) >> (2 * quarter) & 3;
    block.q[i] = static_cast<std::int16_t>(low | high << 4);
  }
  for (int i = 0; i < 16; ++i) block.scale[i] = static_cast<std::int8_t>(bytes[192 + i]);
  block.d = half_at(bytes + 208);
}

}  // namespace

QuantizedBlock read_block(WeightType type, const std::byte* bytes) {
  QuantizedBlock block;
  block.d = half_at(bytes);
  switch (type) {
    case WeightType::kQ8_0:
      for (int i = 0; i < 32; ++i) block.q[i] = static_cast<std::int8_t>(bytes[2 + i]);
      break;
    case WeightType::kQ4_0:
      read_low_bits_32(bytes + 2, block);
      break;
    case WeightType::kQ4_1:
      block.m = half_at(bytes + 2);
      read_low_bits_32(bytes + 4, block);
      break;
    case WeightType::kQ5_0:
      read_low_bits_32(bytes + 6, block);
      read_fifth_bits_32(bytes + 2, block);
      break;
    case WeightType::kQ5_1:
      block.m = half_at(bytes + 2);
      read_low_bits_32(bytes + 8, block);
      read_fifth_bits_32(bytes + 4, block);
      break;
    case WeightType::kQ4K:
      block.m = half_at(bytes + 2);
      read_six_bit_scales(bytes + 4, block);
      read_low_bits_256(bytes + 16, block);
      break;
    case WeightType::kQ5K:
      block.m = half_at(bytes + 2);
      read_six_bit_scales(bytes + 4, block);
      read_low_bits_256(bytes + 48, block);
      for (int i = 0; i < 256; ++i) {  // bit g of 32 bytes is bit 4 of group g
        block.q[i] = static_cast<std::int16_t>(block.q[i] | ((byte_at(bytes + 16, i % 32) >> (i / 32)) & 1) << 4);
      }
      break;
    case WeightType::kQ6K:
      read_q6_k(bytes, block);
      break;
    default:
      DRAFTHORSE_CHECK(false, weight_name(type) << " has no blocks");
  }
  return block;
}

}  // namespace drafthorse
