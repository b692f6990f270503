#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace drafthorse {

/// Equal bits at every index; a NaN equals any NaN. The failure names the first index that differs.
testing::AssertionResult same_bits(std::span<const float> expected, std::span<const float> actual);

/// `count` numbers of about normal distribution (sum of four uniforms, unit variance) times `size`; a function of
/// `seed` alone.
std::vector<float> normal_floats(std::uint64_t seed, std::size_t count, float size = 1.0f);

/// |actual - exact| in units of the last place of a float of exact's size (subnormals: 2^-149).
double ulps(float actual, double exact);

}  // namespace drafthorse
