#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/weight_type.h"

namespace drafthorse {

/// Where things lie in a tile's block of the weight types with 4 to 6 bits:
///
///   block  32 f16 d, affine types then 32 f16 m; then kBlockGroups times
///   group  two-level types: 32 bytes and 32 bytes of integer scales, affine: sc and mn (unsigned), else sc of columns
///          0 to 15 and of 16 to 31 (signed); then
///          low   512 bytes: bits 0 to 3, two columns a byte
///          high  128 bytes for each further bit
///
/// Everything is indexed by r = row mod 32. With k = column mod 32, j = k % 4 and the step s = k / 4:
///   low   byte (s / 2 * 32 + r) * 4 + j, the low nibble for even s, the high one for odd s
///   high  5 bits: bit s of byte r * 4 + j;  6 bits: bits 2 (s % 4) and up of byte (s / 4 * 32 + r) * 4 + j
/// so that a vector of 32-bit lanes, one output each, holds columns 4 s to 4 s + 3 of a step once a shift and a mask
/// have been applied. Only constants: the kernels of all instruction sets include this.
template <int kBitCount, bool kWithOffset, bool kWithSubScales>
struct BitFormat {
  static constexpr int kHighBits = kBitCount - 4;
  static constexpr bool kAffine = kWithOffset;
  static constexpr bool kTwoLevel = kWithSubScales;
  static constexpr int kZero = kAffine ? 0 : 1 << (kBitCount - 1);  ///< taken from the stored integers
  static constexpr std::int64_t kBlockGroups = kTwoLevel ? 8 : 1;

  static constexpr std::size_t kOffsetStart = kTileRows * 2;  ///< of m in the block
  static constexpr std::size_t kHeaderBytes = kTileRows * (kAffine ? 4 : 2);
  static constexpr std::size_t kLowStart = kTwoLevel ? kTileRows * 2 : 0;  ///< in the group
  static constexpr std::size_t kHighStart = kLowStart + kTileRows * kGroup / 2;
  static constexpr std::size_t kGroupBytes = kHighStart + kHighBits * kTileRows * kGroup / 8;
  static constexpr std::size_t kBlockBytes = kHeaderBytes + kBlockGroups * kGroupBytes;
};

struct Q4_0Format : BitFormat<4, false, false> {};
struct Q4_1Format : BitFormat<4, true, false> {};
struct Q5_0Format : BitFormat<5, false, false> {};
struct Q5_1Format : BitFormat<5, true, false> {};
struct Q4KFormat : BitFormat<4, true, true> {};
struct Q5KFormat : BitFormat<5, true, true> {};
struct Q6KFormat : BitFormat<6, false, true> {};

namespace {

/// Calls visit(Format{}) with the format of `type`, and returns whether it has one.
template <typename Visit>
bool with_bit_format(WeightType type, Visit visit) {
  switch (type) {
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBF16:
    case WeightType::kQ8_0:
      return false;
    case WeightType::kQ4_0:
      visit(Q4_0Format{});
      return true;
    case WeightType::kQ4_1:
      visit(Q4_1Format{});
      return true;
    case WeightType::kQ5_0:
      visit(Q5_0Format{});
      return true;
    case WeightType::kQ5_1:
      visit(Q5_1Format{});
      return true;
    case WeightType::kQ4K:
      visit(Q4KFormat{});
      return true;
    case WeightType::kQ5K:
      visit(Q5KFormat{});
      return true;
    case WeightType::kQ6K:
      visit(Q6KFormat{});
      return true;
  }
  return false;
}

}  // namespace
}  // namespace drafthorse
