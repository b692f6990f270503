#include "support/bits.h"

#include <bit>
#include <cmath>

#include "base/random.h"

namespace drafthorse {

testing::AssertionResult same_bits(std::span<const float> expected, std::span<const float> actual) {
  if (expected.size() != actual.size()) {
    return testing::AssertionFailure() << expected.size() << " values expected, " << actual.size() << " given";
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(actual[i])) continue;
    if (std::bit_cast<std::uint32_t>(expected[i]) == std::bit_cast<std::uint32_t>(actual[i])) continue;
    return testing::AssertionFailure() << "index " << i << " of " << expected.size() << ": expected " << std::hexfloat
                                       << expected[i] << ", got " << actual[i];
  }
  return testing::AssertionSuccess();
}

std::vector<float> normal_floats(std::uint64_t seed, std::size_t count, float size) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = splitmix64(seed, i);
    double sum = 0;
    for (int part = 0; part < 4; ++part) sum += static_cast<double>((bits >> (16 * part)) & 0xffffu) / 65536.0 - 0.5;
    values[i] = static_cast<float>(sum * std::sqrt(3.0)) * size;
  }
  return values;
}

double ulps(float actual, double exact) {
  if (std::isinf(exact) || std::isnan(exact)) return actual == static_cast<float>(exact) ? 0.0 : HUGE_VAL;
  const int exponent = exact == 0 ? -149 : std::max(std::ilogb(exact) - 23, -149);
  return std::abs(static_cast<double>(actual) - exact) / std::ldexp(1.0, exponent);
}

}  // namespace drafthorse
