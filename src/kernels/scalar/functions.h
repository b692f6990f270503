#pragma once

#include <bit>
#include <cstdint>

/// The elementary functions of the numeric contract, one value at a time. Every other table performs these very
/// operations in this very order, so a result has the same bits everywhere. Coefficients: our own minimax fits,
/// docs/numerics.md.
namespace drafthorse::scalar {

/// a * b + c, rounded once.
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

/// The larger of a and b; b when either is NaN (the rule of the x86 instruction).
inline float larger(float a, float b) { return a > b ? a : b; }

/// 2^n for n in [-126, 127].
inline float power_of_two(std::int32_t n) { return std::bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23); }

/// e^x, subnormal results kept, +infinity above 88.7228, +0 below -103.97. exp(0) is exactly 1.
inline float exp(float x) {
  if (x != x) return x;
  if (x < -104.0f) x = -104.0f;
  if (x > 89.0f) x = 89.0f;
  constexpr float kRound = 0x1.8p23f;  // adding it rounds to an integer, which is then the low part of the bits
  const float shifted = fma(x, 0x1.715476p+0f, kRound);
  const float n = shifted - kRound;
  float r = fma(n, -0x1.62e430p-1f, x);
  r = fma(n, 0x1.05c610p-29f, r);
  float p = 0x1.6a2448p-10f;
  p = fma(p, r, 0x1.1239d6p-7f);
  p = fma(p, r, 0x1.5558f2p-5f);
  p = fma(p, r, 0x1.555492p-3f);
  p = fma(p, r, 0x1.fffffcp-2f);
  p = fma(p, r, 1.0f);
  p = fma(p, r, 1.0f);
  // Two factors, since n reaches -150 and 128. The first product is exact, so the result is rounded once.
  const auto whole = static_cast<std::int32_t>(n);
  const std::int32_t first = whole >> 1;
  return (p * power_of_two(first)) * power_of_two(whole - first);
}

/// log(1 + f) for f in [-0.25, 0.5].
inline float log1p_reduced(float f) {
  float p = -0x1.6fe64cp-5f;
  p = fma(p, f, 0x1.abf6b6p-4f);
  p = fma(p, f, -0x1.0d9002p-3f);
  p = fma(p, f, 0x1.2897b6p-3f);
  p = fma(p, f, -0x1.54f23ep-3f);
  p = fma(p, f, 0x1.99685ap-3f);
  p = fma(p, f, -0x1.000024p-2f);
  p = fma(p, f, 0x1.5555a6p-2f);
  p = fma(p, f, -0.5f);
  return fma(f * f, p, f);
}

/// The multiple of 2^23 that takes the bits of a positive normal number to those of a number in [0.75, 1.5).
inline std::uint32_t exponent_offset(std::uint32_t bits) { return (bits - 0x3f400000u) & 0xff800000u; }

/// log x for positive, normal, finite x.
inline float log(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t offset = exponent_offset(bits);
  const float f = std::bit_cast<float>(bits - offset) - 1.0f;
  const auto k = static_cast<float>(static_cast<std::int32_t>(offset) >> 23);
  return fma(k, 0x1.62e430p-1f, log1p_reduced(f));
}

/// log(1 + y) for y in (-1, 1], relative error small at every size of y: 1 + y is scaled by 2^-k before it is rounded.
inline float log1p(float y) {
  const std::uint32_t offset = exponent_offset(std::bit_cast<std::uint32_t>(1.0f + y));
  const float down = std::bit_cast<float>(0x3f800000u - offset);  // 2^-k
  const float f = fma(y, down, down - 1.0f);
  const auto k = static_cast<float>(static_cast<std::int32_t>(offset) >> 23);
  return fma(k, 0x1.62e430p-1f, log1p_reduced(f));
}

/// tanh x from |x|: a polynomial below 0.5625, 1 - 2 / (e^2|x| + 1) above; then the sign.
inline float tanh(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const float size = std::bit_cast<float>(bits & 0x7fffffffu);
  float result;
  if (size < 0.5625f) {
    const float t = size * size;
    float q = -0x1.9454f2p-8f;
    q = fma(q, t, 0x1.5811f6p-6f);
    q = fma(q, t, -0x1.b905c4p-5f);
    q = fma(q, t, 0x1.110c5ep-3f);
    q = fma(q, t, -0x1.555548p-2f);
    result = fma(size * t, q, size);
  } else {
    result = 1.0f - 2.0f / (exp(size + size) + 1.0f);
  }
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(result) | (bits & 0x80000000u));
}

/// x / (1 + e^-x).
inline float silu(float x) { return x / (1.0f + exp(-x)); }

/// log(1 + e^x) = max(x, 0) + log1p(e^-|x|).
inline float softplus(float x) {
  const float size = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0x7fffffffu);
  return larger(0.0f, x) + log1p(exp(-size));
}

/// Sums of rows run in this many lanes: element i belongs to lane i mod 16.
inline constexpr int kLanes = 16;

/// Adds the lanes: j + 8 to j, then + 4, + 2, + 1.
inline float sum_of_lanes(float (&lane)[kLanes]) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) lane[j] = lane[j] + lane[j + width];
  }
  return lane[0];
}

}  // namespace drafthorse::scalar
