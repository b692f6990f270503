#include "base/random.h"

#include <gtest/gtest.h>

#include <set>

namespace drafthorse {
namespace {

// Vectors of SplitMix64 as published with the generator.
TEST(Random, SplitMix64MatchesItsVectors) {
  EXPECT_EQ(splitmix64(0, 0), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(splitmix64(0, 1), 0x6E789E6AA1B965F4u);
  EXPECT_EQ(splitmix64(42, 0), 0xBDD732262FEB6E95u);
  EXPECT_EQ(splitmix64(42, 1), 0x28EFE333B266F103u);
  EXPECT_EQ(splitmix64(1234, 0), 0xBB0CF61B2F181CDBu);
}

TEST(Random, ADrawDependsOnSeedPositionAndPurposeAlone) {
  EXPECT_EQ(draw_bits(7, 100, Purpose::kToken), draw_bits(7, 100, Purpose::kToken));
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t position = 0; position < 100; ++position) {
      for (const Purpose purpose : {Purpose::kProposal, Purpose::kAccept, Purpose::kToken}) {
        seen.insert(draw_bits(seed, position, purpose));
      }
    }
  }
  EXPECT_EQ(seen.size(), 3000u);
}

TEST(Random, UniformDrawsFillTheUnitInterval) {
  double sum = 0;
  double low = 1;
  double high = 0;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double u = draw_uniform(3, i, Purpose::kAccept);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    low = std::min(low, u);
    high = std::max(high, u);
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
  EXPECT_LT(low, 1e-3);
  EXPECT_GT(high, 1 - 1e-3);
}

TEST(Random, AFreshSeedSurvivesADouble) {
  const std::uint64_t seed = fresh_seed();
  EXPECT_EQ(static_cast<std::uint64_t>(static_cast<double>(seed)), seed);
  EXPECT_NE(fresh_seed(), seed);
}

}  // namespace
}  // namespace drafthorse
