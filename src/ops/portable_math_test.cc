#include "ops/portable_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "base/thread_pool.h"
#include "ops/rope_table.h"

namespace drafthorse {
namespace {

std::uint64_t bits(double x) {
  std::uint64_t u;
  std::memcpy(&u, &x, sizeof u);
  return u;
}

TEST(PortableMath, SineAndCosineAreAccurateForAnyPosition) {
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double size = std::pow(2.0, -20.0 + 42.0 * draw_uniform(1, i, Purpose::kToken));
    const double x = i % 2 == 0 ? size : -size;
    const SinCos at = portable_sin_cos(x);
    ASSERT_NEAR(at.sin, std::sin(x), 1e-15) << x;
    ASSERT_NEAR(at.cos, std::cos(x), 1e-15) << x;
  }
  EXPECT_EQ(portable_sin_cos(0.0).sin, 0.0);
  EXPECT_EQ(portable_sin_cos(0.0).cos, 1.0);
}

TEST(PortableMath, LogAndExpAreAccurate) {
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double x = -40.0 + 80.0 * draw_uniform(2, i, Purpose::kToken);
    ASSERT_NEAR(portable_exp(x) / std::exp(x), 1.0, 1e-15) << x;
    const double y = std::exp(x);
    ASSERT_NEAR(portable_log(y), std::log(y), 1e-15 * std::max(1.0, std::abs(x))) << y;
  }
  EXPECT_EQ(portable_exp(0.0), 1.0);
  EXPECT_EQ(portable_log(1.0), 0.0);
}

TEST(PortableMath, BitsAreFixed) {
  // A change of these numbers changes every cache and logit: it must be meant.
  EXPECT_EQ(bits(portable_sin_cos(12345.678).sin), 0xbfe687d5890974a5);
  EXPECT_EQ(bits(portable_sin_cos(12345.678).cos), 0x3fe6b94c3bbe24b8);
  EXPECT_EQ(bits(portable_log(1e6)), 0x402ba18a998fffa0);
  EXPECT_EQ(bits(portable_exp(-12.5)), 0x3ecf42ed3f68e690);
}

TEST(RopeTable, HoldsTheRoundedAnglesOfEveryPosition) {
  ThreadPool pool(2);
  const std::vector<double> frequencies = {1.0, 0.1, 0.001};
  const RopeTable table(frequencies, 1.25, 1000, true, pool);
  EXPECT_EQ(table.half(), 3);
  EXPECT_EQ(table.positions(), 1000);
  EXPECT_TRUE(table.interleaved());
  for (const std::int64_t position : {0, 1, 63, 64, 999}) {
    for (std::size_t i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      EXPECT_FLOAT_EQ(table.cos(position)[i], static_cast<float>(1.25 * std::cos(angle)));
      EXPECT_FLOAT_EQ(table.sin(position)[i], static_cast<float>(1.25 * std::sin(angle)));
    }
  }
}

}  // namespace
}  // namespace drafthorse
