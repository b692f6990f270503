#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "quant/weight_type.h"

namespace drafthorse::scalar {

/// Every NaN of an activation becomes this one, the value x86 makes of an invalid operation, so that no NaN's bits
/// depend on the order of operands.
inline constexpr float kNan = std::bit_cast<float>(0xffc00000u);
inline constexpr std::uint32_t kInfinityBits = 0x7f800000u;
/// Smaller groups of activations count as zeros: 127 / amax would overflow.
inline constexpr float kSmallestAmax = 0x1p-120f;

/// A group of activations for integer weights: x is about scale * q.
struct QuantizedGroup {
  float scale;
  std::int8_t q[kGroup];
};

inline QuantizedGroup quantized(const float* x) {
  std::uint32_t largest = 0;  // of the magnitudes' bits, which order like the numbers; infinity and NaN are the largest
  for (std::int64_t k = 0; k < kGroup; ++k)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(x[k]) & 0x7fffffffu);
  QuantizedGroup group{};
  if (largest >= kInfinityBits) {
    group.scale = kNan;
    return group;
  }
  const float amax = std::bit_cast<float>(largest);
  if (amax < kSmallestAmax) return group;
  group.scale = amax / 127.0f;
  const float inverse = 127.0f / amax;
  for (std::int64_t k = 0; k < kGroup; ++k) group.q[k] = static_cast<std::int8_t>(std::nearbyint(x[k] * inverse));
  return group;
}

}  // namespace drafthorse::scalar
