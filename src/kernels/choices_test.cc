#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/random.h"
#include "kernels/kernel_table.h"
#include "support/bits.h"

namespace drafthorse {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");
constexpr std::size_t kLengths[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 1000, 1024, 4099};

std::int64_t count(const std::vector<float>& x) { return static_cast<std::int64_t>(x.size()); }

// --- argmax
// -------------------------------------------------------------------------------------------------------------

TEST(Argmax, TakesTheLowestIndexOfTheLargestValue) {
  for (const KernelTable* table : runnable_kernel_tables()) {
    SCOPED_TRACE(table->name);
    for (std::size_t n : kLengths) {
      for (std::size_t winner : {std::size_t{0}, n / 3, n - 1}) {
        std::vector<float> x = normal_floats(n, n);
        x[winner] = 9.0f;
        EXPECT_EQ(table->argmax(x.data(), count(x)), static_cast<std::int64_t>(winner));
        x[n - 1] = 9.0f;  // a tie further on changes nothing
        EXPECT_EQ(table->argmax(x.data(), count(x)), static_cast<std::int64_t>(winner));
      }
    }
  }
}

TEST(Argmax, NanNeverWinsOverANumber) {
  for (const KernelTable* table : runnable_kernel_tables()) {
    SCOPED_TRACE(table->name);
    for (std::size_t n : {3u, 40u, 200u}) {
      std::vector<float> x(n, kNan);
      EXPECT_EQ(table->argmax(x.data(), count(x)), 0);
      x[n - 2] = -kInfinity;
      EXPECT_EQ(table->argmax(x.data(), count(x)), static_cast<std::int64_t>(n - 2));
      x[n - 1] = -3.0f;
      EXPECT_EQ(table->argmax(x.data(), count(x)), static_cast<std::int64_t>(n - 1));
    }
    const std::vector<float> zeros = {-1.0f, -0.0f, 0.0f};
    EXPECT_EQ(table->argmax(zeros.data(), 3), 1) << "-0 and 0 are a tie";
    const std::vector<float> nothing(37, -kInfinity);
    EXPECT_EQ(table->argmax(nothing.data(), count(nothing)), 0);
  }
}

// --- the hash of logit rows
// ---------------------------------------------------------------------------------------------

TEST(LogitsHash, HasTheseValues) {
  const std::vector<float> x = {1.0f, -2.5f, 0.0f, 3.0f};
  for (const KernelTable* table : runnable_kernel_tables()) {
    SCOPED_TRACE(table->name);
    // mix(bits, id) = mix64((id << 32 | bits) + 0x9e3779b97f4a7c15)
    EXPECT_EQ(table->logits_hash(x.data(), 0, 1), mix64(0x3f800000u + 0x9e3779b97f4a7c15u));
    EXPECT_EQ(table->logits_hash(x.data(), 0, 1), 0xfd695a1b70dc1235u);
    EXPECT_EQ(table->logits_hash(x.data(), 0, 4), 0x1c5e999d4f83a427u);
    EXPECT_EQ(table->logits_hash(x.data(), 151936, 4), 0xd14e6e420cb48228u);
  }
}

TEST(LogitsHash, SumsOfDisjointRangesAddUp) {
  for (const KernelTable* table : runnable_kernel_tables()) {
    SCOPED_TRACE(table->name);
    for (std::size_t n : kLengths) {
      const std::vector<float> x = normal_floats(n, n);
      const std::uint64_t whole = kernel_table("scalar").logits_hash(x.data(), 500, count(x));
      EXPECT_EQ(table->logits_hash(x.data(), 500, count(x)), whole);
      if (n < 2) continue;
      const std::int64_t cut = count(x) / 3 + 1;
      EXPECT_EQ(table->logits_hash(x.data(), 500, cut) + table->logits_hash(x.data() + cut, 500 + cut, count(x) - cut),
                whole);
    }
  }
}

TEST(LogitsHash, SeesOneBitTheSignOfZeroAndTheOrder) {
  for (const KernelTable* table : runnable_kernel_tables()) {
    SCOPED_TRACE(table->name);
    std::vector<float> x = normal_floats(1, 100);
    x[5] = 0.0f;
    const std::uint64_t before = table->logits_hash(x.data(), 0, 100);
    x[5] = -0.0f;
    EXPECT_NE(table->logits_hash(x.data(), 0, 100), before);
    x[5] = 0.0f;
    x[7] = std::nextafter(x[7], 9.0f);
    EXPECT_NE(table->logits_hash(x.data(), 0, 100), before);
    x = normal_floats(1, 100);
    x[5] = 0.0f;
    std::swap(x[20], x[21]);
    EXPECT_NE(table->logits_hash(x.data(), 0, 100), before);
  }
}

// --- softmax and log-sum-exp
// --------------------------------------------------------------------------------------------

TEST(Softmax, IsTheSameBitsInEveryTableAndCloseToItsClosedForm) {
  for (std::size_t n : kLengths) {
    for (float temperature : {1.0f, 0.7f, 3.0f}) {
      std::vector<float> x = normal_floats(n, n, 5.0f);
      for (std::size_t i = 1; i < n; i += 7) x[i] = -kInfinity;
      std::vector<float> expected(n);
      kernel_table("scalar").softmax(x.data(), temperature, expected.data(), count(x));
      const double max = *std::max_element(x.begin(), x.end());
      double sum = 0;
      for (float v : x) sum += std::exp((v - max) / temperature);
      for (std::size_t i = 0; i < n; ++i) {
        const double exact = std::exp((x[i] - max) / temperature) / sum;
        ASSERT_NEAR(expected[i], exact, 4e-6 * exact);
        if (x[i] == -kInfinity) {
          ASSERT_EQ(expected[i], 0.0f);
        }
      }
      for (const KernelTable* table : runnable_kernel_tables()) {
        SCOPED_TRACE(table->name);
        std::vector<float> row(x);
        row.push_back(77.0f);
        table->softmax(row.data(), temperature, row.data(), count(x));  // in place
        ASSERT_EQ(row.back(), 77.0f);
        row.pop_back();
        ASSERT_TRUE(same_bits(expected, row)) << "n " << n;
      }
    }
  }
}

TEST(Softmax, NothingButMinusInfinityBecomesZeros) {
  const std::vector<float> x(21, -kInfinity);
  for (const KernelTable* table : runnable_kernel_tables()) {
    std::vector<float> out(21, 5.0f);
    table->softmax(x.data(), 1.0f, out.data(), 21);
    EXPECT_EQ(out, std::vector<float>(21, 0.0f)) << table->name;
  }
}

TEST(LogSumExp, IsTheSameBitsInEveryTableAndCloseToItsClosedForm) {
  for (std::size_t n : kLengths) {
    std::vector<float> x = normal_floats(n, n, 8.0f);
    for (std::size_t i = 2; i < n; i += 5) x[i] = -kInfinity;
    const float expected = kernel_table("scalar").log_sum_exp(x.data(), count(x));
    const double max = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (float v : x) sum += std::exp(v - max);
    EXPECT_NEAR(expected, max + std::log(sum), 2e-6 * (1 + std::abs(max))) << "n " << n;
    for (const KernelTable* table : runnable_kernel_tables()) {
      const float result = table->log_sum_exp(x.data(), count(x));
      EXPECT_TRUE(same_bits(std::span(&expected, 1), std::span(&result, 1))) << table->name << " n " << n;
    }
  }
  const std::vector<float> nothing(19, -kInfinity);
  for (const KernelTable* table : runnable_kernel_tables())
    EXPECT_EQ(table->log_sum_exp(nothing.data(), 19), -kInfinity);
}

// --- Gumbel noise
// -------------------------------------------------------------------------------------------------------

std::vector<float> noise(const KernelTable& table, std::uint64_t seed, std::uint64_t position, std::int64_t first_id,
                         std::size_t n) {
  const std::vector<float> zeros(n, 0.0f);
  std::vector<float> out(n);
  table.gumbel_scores(zeros.data(), nullptr, first_id, 1.0f, seed, position, out.data(), static_cast<std::int64_t>(n));
  return out;
}

TEST(Gumbel, HasTheseValues) {
  struct Vector {
    std::uint64_t seed;
    std::uint64_t position;
    std::int64_t id;
    float expected;
  };
  constexpr Vector kVectors[] = {
      {0u, 0u, 0, 0x1.ccf932p-4f},
      {0u, 0u, 1, -0x1.6bdab4p-2f},
      {0u, 1u, 0, 0x1.b32b12p-2f},
      {1u, 0u, 0, 0x1.d2a6cp-2f},
      {42u, 7u, 151935, 0x1.0f4e0ap+0f},
      {123456789u, 1000u, 31999, -0x1.201a4ep-3f},
      {9007199254740991u, 131071u, 262143, 0x1.04c768p+0f},
      {18446744073709551615u, 18446744073709551615u, 2147483647, 0x1.06bda2p+0f},
  };
  for (const KernelTable* table : runnable_kernel_tables()) {
    for (const Vector& v : kVectors) {
      const std::vector<float> result = noise(*table, v.seed, v.position, v.id, 1);
      EXPECT_TRUE(same_bits(std::span(&v.expected, 1), result)) << table->name << " seed " << v.seed << " id " << v.id;
    }
  }
}

TEST(Gumbel, ScoresAreTheSameBitsInEveryTableWithAndWithoutIds) {
  for (std::size_t n : kLengths) {
    std::vector<float> z = normal_floats(n, n, 4.0f);
    if (n > 3) z[3] = -kInfinity;
    std::vector<std::int32_t> ids(n);
    for (std::size_t i = 0; i < n; ++i) ids[i] = static_cast<std::int32_t>(splitmix64(n, i) % 250000);
    std::vector<float> ranged(n), listed(n);
    const KernelTable& scalar = kernel_table("scalar");
    scalar.gumbel_scores(z.data(), nullptr, 1000, 0.8f, 42, 17, ranged.data(), count(z));
    scalar.gumbel_scores(z.data(), ids.data(), 0, 0.8f, 42, 17, listed.data(), count(z));
    if (n > 3) {
      EXPECT_EQ(ranged[3], -kInfinity);
    }
    for (const KernelTable* table : runnable_kernel_tables()) {
      SCOPED_TRACE(table->name);
      std::vector<float> out(n + 1, 77.0f);
      table->gumbel_scores(z.data(), nullptr, 1000, 0.8f, 42, 17, out.data(), count(z));
      ASSERT_TRUE(same_bits(ranged, std::span(out).first(n)));
      table->gumbel_scores(z.data(), ids.data(), 0, 0.8f, 42, 17, out.data(), count(z));
      ASSERT_TRUE(same_bits(listed, std::span(out).first(n)));
      ASSERT_EQ(out[n], 77.0f);
    }
  }
}

TEST(Gumbel, AnIdHasTheSameNoiseHoweverItIsAskedFor) {
  const KernelTable& table = kernel_table();
  const std::vector<float> row = noise(table, 7, 3, 0, 300);
  const std::vector<float> part = noise(table, 7, 3, 100, 50);
  EXPECT_TRUE(same_bits(std::span(row).subspan(100, 50), part));
  const std::int32_t id = 211;
  const float zero = 0.0f;
  float one = 0.0f;
  table.gumbel_scores(&zero, &id, 0, 1.0f, 7, 3, &one, 1);
  EXPECT_EQ(one, row[211]);
  EXPECT_NE(noise(table, 7, 4, 0, 300), row);
  EXPECT_NE(noise(table, 8, 3, 0, 300), row);
}

TEST(Gumbel, AMillionDrawsFollowTheGumbelDistribution) {
  constexpr std::size_t kDraws = 1000000;
  for (std::uint64_t seed : {1u, 2u, 3u}) {
    std::vector<float> draws;
    for (std::uint64_t position = 0; position < 10; ++position) {
      const std::vector<float> row = noise(kernel_table(), seed, position, 0, kDraws / 10);
      draws.insert(draws.end(), row.begin(), row.end());
    }
    const double n = kDraws;
    const double mean = std::accumulate(draws.begin(), draws.end(), 0.0) / n;
    double squares = 0;
    for (float g : draws) squares += (g - mean) * (g - mean);
    const double variance = squares / n;
    // mean: Euler's constant, variance pi^2 / 6, kurtosis 27 / 5; five standard errors
    constexpr double kVariance = 1.6449340668482264;
    EXPECT_NEAR(mean, 0.5772156649015329, 5 * std::sqrt(kVariance / n)) << "seed " << seed;
    EXPECT_NEAR(variance, kVariance, 5 * kVariance * std::sqrt((5.4 - 1) / n)) << "seed " << seed;
    for (double q = -2.5; q < 13; q += 0.25) {
      const double share = std::exp(-std::exp(-q));
      const double below =
          static_cast<double>(std::count_if(draws.begin(), draws.end(), [q](float g) { return g <= q; }));
      EXPECT_NEAR(below, n * share, 5 * std::sqrt(n * share * (1 - share)) + 1) << "seed " << seed << " at " << q;
    }
  }
}

// Noise made of a uniform number on a grid of 2^-24 or 2^-32 repeats itself where it decides: at the top.
TEST(Gumbel, TheLargestDrawsAreAllDifferent) {
  std::vector<float> draws = noise(kernel_table(), 5, 0, 0, 1000000);
  std::sort(draws.begin(), draws.end(), std::greater<>());
  draws.resize(2000);  // -log u below 0.002
  // 24 significant bits: about 2000^2 / 2 pairs over some 10^7 different values leave less than one chance meeting
  const auto distinct = static_cast<std::size_t>(std::unique(draws.begin(), draws.end()) - draws.begin());
  EXPECT_GE(distinct, 1990u);
}

}  // namespace
}  // namespace drafthorse
