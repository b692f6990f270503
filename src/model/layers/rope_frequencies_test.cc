#include "model/layers/rope_frequencies.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace drafthorse {
namespace {

RopeConfig plain(int dims = 64, double theta = 500000.0) {
  RopeConfig rope;
  rope.theta = theta;
  rope.rotary_dims = dims;
  return rope;
}

TEST(RopeFrequencies, FallGeometricallyFromOne) {
  const std::vector<double> frequencies = inverse_frequencies(plain());
  ASSERT_EQ(frequencies.size(), 32u);
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_NEAR(frequencies[i] / std::pow(500000.0, -static_cast<double>(i) / 32), 1.0, 1e-13);
  }
}

TEST(RopeFrequencies, LinearDividesAllByTheFactor) {
  RopeConfig rope = plain();
  rope.kind = RopeKind::kLinear;
  rope.factor = 4.0;
  const auto base = inverse_frequencies(plain());
  const auto stretched = inverse_frequencies(rope);
  for (std::size_t i = 0; i < base.size(); ++i) EXPECT_EQ(stretched[i], base[i] / 4.0);
}

TEST(RopeFrequencies, Llama3KeepsShortWavesAndStretchesLongOnes) {
  RopeConfig rope = plain(128);
  rope.kind = RopeKind::kLlama3;
  rope.factor = 8.0;
  rope.original_max_position = 8192;
  const auto base = inverse_frequencies(plain(128));
  const auto stretched = inverse_frequencies(rope);
  int kept = 0, divided = 0, mixed = 0;
  for (std::size_t i = 0; i < base.size(); ++i) {
    const double wavelength = 2.0 * M_PI / base[i];
    if (wavelength < 8192.0 / 4.0) {
      EXPECT_EQ(stretched[i], base[i]);
      ++kept;
    } else if (wavelength > 8192.0) {
      EXPECT_EQ(stretched[i], base[i] / 8.0);
      ++divided;
    } else {
      const double share = (8192.0 / wavelength - 1.0) / 3.0;
      EXPECT_NEAR(stretched[i] / (base[i] * ((1.0 - share) / 8.0 + share)), 1.0, 1e-12);
      ++mixed;
    }
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(divided, 0);
  EXPECT_GT(mixed, 0);
}

TEST(RopeFrequencies, YarnRampsOverIndicesBetweenTheTwoRotationCounts) {
  RopeConfig rope = plain(64, 10000.0);
  rope.kind = RopeKind::kYarn;
  rope.factor = 4.0;
  rope.original_max_position = 4096;
  const auto index = [](double rotations) {
    return 64.0 * std::log(4096.0 / (2.0 * M_PI * rotations)) / (2.0 * std::log(10000.0));
  };
  const double first = std::floor(index(32.0));
  const double last = std::ceil(index(1.0));
  ASSERT_GT(first, 0.0);
  ASSERT_LT(last, 31.0);
  const auto base = inverse_frequencies(plain(64, 10000.0));
  const auto stretched = inverse_frequencies(rope);
  for (std::size_t i = 0; i < base.size(); ++i) {
    const double ramp = std::min(1.0, std::max(0.0, (static_cast<double>(i) - first) / (last - first)));
    EXPECT_NEAR(stretched[i] / (base[i] * (1.0 - ramp) + base[i] / 4.0 * ramp), 1.0, 1e-13) << i;
  }
  EXPECT_EQ(stretched.front(), base.front());
  EXPECT_EQ(stretched.back(), base.back() / 4.0);
}

TEST(RopeFrequencies, AFactorOfOneChangesNothing) {
  for (const RopeKind kind : {RopeKind::kLinear, RopeKind::kLlama3, RopeKind::kYarn}) {
    RopeConfig rope = plain();
    rope.kind = kind;
    rope.original_max_position = 8192;
    const auto base = inverse_frequencies(plain());
    const auto same = inverse_frequencies(rope);
    for (std::size_t i = 0; i < base.size(); ++i) EXPECT_NEAR(same[i] / base[i], 1.0, 1e-15);
  }
}

TEST(RopeFrequencies, TheAttentionFactorIsInTheTable) {
  RopeConfig rope = plain(8, 10000.0);
  rope.attention_factor = 1.25;
  ThreadPool pool(1);
  const RopeTable table = rope_table(rope, 10, pool);
  EXPECT_FLOAT_EQ(table.cos(0)[0], 1.25f);
  EXPECT_FLOAT_EQ(table.sin(3)[1], static_cast<float>(1.25 * std::sin(0.3)));
}

}  // namespace
}  // namespace drafthorse
