#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "kernels/kernel_table.h"
#include "kernels/scalar/functions.h"
#include "support/bits.h"
#include "tensor/aligned_buffer.h"
#include "tensor/kv_layout.h"

namespace drafthorse {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// --- the functions of the contract
// --------------------------------------------------------------------------------------

/// The largest error in ulp of `ours` against `exact` over every `step`-th float of [low, high], by bits.
double worst_ulps(float (*ours)(float), double (*exact)(double), float low, float high, std::uint32_t step) {
  const auto first = std::bit_cast<std::uint32_t>(low);
  const auto last = std::bit_cast<std::uint32_t>(high);
  double worst = 0;
  for (std::uint32_t bits = std::min(first, last); bits <= std::max(first, last) - step; bits += step) {
    const auto x = std::bit_cast<float>(bits);
    worst = std::max(worst, ulps(ours(x), exact(static_cast<double>(x))));
  }
  return worst;
}

TEST(Functions, ExpIsWithinOneUlp) {
  EXPECT_LT(worst_ulps(scalar::exp, std::exp, 1e-10f, 88.72f, 1009), 1.0);
  EXPECT_LT(worst_ulps(scalar::exp, std::exp, -1e-10f, -87.33f, 1009), 1.0);
  EXPECT_LT(worst_ulps(scalar::exp, std::exp, -87.33f, -103.9f, 101), 1.0) << "subnormal results";
}

TEST(Functions, ExpMeetsItsEnds) {
  EXPECT_EQ(scalar::exp(0.0f), 1.0f);
  EXPECT_EQ(scalar::exp(-0.0f), 1.0f);
  EXPECT_EQ(scalar::exp(-kInfinity), 0.0f);
  EXPECT_FALSE(std::signbit(scalar::exp(-kInfinity)));
  EXPECT_EQ(scalar::exp(-104.0f), 0.0f);
  EXPECT_EQ(scalar::exp(88.73f), kInfinity);
  EXPECT_EQ(scalar::exp(kInfinity), kInfinity);
  EXPECT_LT(scalar::exp(88.72f), kInfinity);
  EXPECT_TRUE(std::isnan(scalar::exp(std::nanf(""))));
}

TEST(Functions, LogIsWithinOneUlp) {
  EXPECT_LT(worst_ulps(scalar::log, std::log, 1.2e-38f, 0.75f, 10007), 1.0);
  EXPECT_LT(worst_ulps(scalar::log, std::log, 0.75f, 1.5f, 11), 1.0);
  EXPECT_LT(worst_ulps(scalar::log, std::log, 1.5f, 3.4e38f, 10007), 1.0);
  EXPECT_EQ(scalar::log(1.0f), 0.0f);
}

TEST(Functions, Log1pIsWithinOneAndAHalfUlpDownToTheSmallest) {
  EXPECT_LT(worst_ulps(scalar::log1p, std::log1p, 1e-44f, 1.0f, 10007), 1.5);
  EXPECT_LT(worst_ulps(scalar::log1p, std::log1p, -1e-44f, -0.99999994f, 10007), 1.5);
  EXPECT_EQ(scalar::log1p(1e-30f), 1e-30f);
}

TEST(Functions, TanhIsWithinTwoUlp) {
  EXPECT_LT(worst_ulps(scalar::tanh, std::tanh, 1e-30f, 20.0f, 2003), 2.0);
  EXPECT_LT(worst_ulps(scalar::tanh, std::tanh, -1e-30f, -20.0f, 2003), 2.0);
  EXPECT_LT(worst_ulps(scalar::tanh, std::tanh, 0.5f, 0.65f, 1), 2.0) << "where the two forms meet";
  EXPECT_EQ(scalar::tanh(kInfinity), 1.0f);
  EXPECT_EQ(scalar::tanh(-kInfinity), -1.0f);
  EXPECT_TRUE(std::signbit(scalar::tanh(-0.0f)));
}

TEST(Functions, SiluAndSoftplusStayCloseToTheirClosedForms) {
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  const auto softplus = [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); };
  EXPECT_LT(worst_ulps(scalar::silu, silu, 1e-30f, 1e6f, 2003), 2.5);
  EXPECT_LT(worst_ulps(scalar::silu, silu, -1e-30f, -80.0f, 2003), 2.5);
  EXPECT_LT(worst_ulps(scalar::softplus, softplus, 1e-30f, 1e6f, 2003), 2.0);
  EXPECT_LT(worst_ulps(scalar::softplus, softplus, -1e-30f, -80.0f, 2003), 2.5);
}

// --- every table against scalar, bit by bit
// -----------------------------------------------------------------------------

constexpr std::size_t kLengths[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 100, 127, 1000, 1024, 4099};
constexpr float kGuard = 12345.0f;

/// Runs `operation(table, data, n)` under every table on a copy of `input` one float off every alignment, and compares
/// the bits. The floats around the copy must stay as they are.
void expect_same_everywhere(const std::vector<float>& input,
                            const std::function<void(const KernelTable&, float*, std::int64_t)>& operation) {
  std::vector<float> expected;
  for (const KernelTable* table : runnable_kernel_tables()) {
    SCOPED_TRACE(testing::Message() << table->name << ", n = " << input.size());
    std::vector<float> row(input.size() + 18, kGuard);
    std::copy(input.begin(), input.end(), row.begin() + 1);
    operation(*table, row.data() + 1, static_cast<std::int64_t>(input.size()));
    ASSERT_EQ(row.front(), kGuard);
    for (std::size_t i = input.size() + 1; i < row.size(); ++i) ASSERT_EQ(row[i], kGuard) << "written past the end";
    const std::vector<float> result(row.begin() + 1, row.end() - 17);
    if (expected.empty()) expected = result;
    ASSERT_TRUE(same_bits(expected, result));
  }
}

/// Values over every size: the larger part of order 1, some huge, tiny, signed zeros, infinities and NaN.
std::vector<float> wild_floats(std::uint64_t seed, std::size_t n) {
  std::vector<float> x = normal_floats(seed, n, 3.0f);
  const float odd[] = {0.0f,    -0.0f,       88.72f,    -88.0f,     100.0f,        -103.5f, 1e-40f, -1e-40f,
                       0.5625f, -0.5624999f, kInfinity, -kInfinity, std::nanf(""), 3e38f,   -3e38f, 1e-20f};
  for (std::size_t i = 3; i < n; i += 5) x[i] = odd[(i / 5 + seed) % std::size(odd)];
  return x;
}

TEST(Rows, ElementwiseOperationsAreTheSameBitsInEveryTable) {
  for (std::size_t n : kLengths) {
    const std::vector<float> x = wild_floats(n, n);
    const std::vector<float> a = normal_floats(n + 1, n);
    expect_same_everywhere(x,
                           [&](const KernelTable& t, float* row, std::int64_t count) { t.add(a.data(), row, count); });
    expect_same_everywhere(x, [&](const KernelTable& t, float* row, std::int64_t count) { t.scale(0.3f, row, count); });
    expect_same_everywhere(x, [&](const KernelTable& t, float* row, std::int64_t count) { t.softplus(row, count); });
    expect_same_everywhere(x,
                           [&](const KernelTable& t, float* row, std::int64_t count) { t.softcap(30.0f, row, count); });
    expect_same_everywhere(
        x, [&](const KernelTable& t, float* row, std::int64_t count) { t.silu_multiply(row, a.data(), row, count); });
    expect_same_everywhere(
        x, [&](const KernelTable& t, float* row, std::int64_t count) { t.silu_multiply(a.data(), row, row, count); });
  }
}

TEST(Rows, RmsNormIsTheSameBitsInEveryTable) {
  for (std::size_t n : kLengths) {
    const std::vector<float> weight = normal_floats(n + 1, n);
    expect_same_everywhere(normal_floats(n, n, 2.0f), [&](const KernelTable& t, float* row, std::int64_t count) {
      t.rms_norm(row, weight.data(), 1e-6f, count, row);
    });
  }
}

TEST(Rows, RopeIsTheSameBitsInEveryTable) {
  for (std::size_t n : {2u, 6u, 16u, 18u, 30u, 32u, 34u, 48u, 62u, 64u, 96u, 128u, 256u}) {
    const std::vector<float> cos = normal_floats(n, n / 2);
    const std::vector<float> sin = normal_floats(n + 1, n / 2);
    for (bool interleaved : {false, true}) {
      expect_same_everywhere(normal_floats(n + 2, n), [&](const KernelTable& t, float* row, std::int64_t count) {
        t.rope(row, cos.data(), sin.data(), count / 2, interleaved);
      });
    }
  }
}

TEST(Rows, ToFloatIsExactInEveryTableAtAnyAlignment) {
  for (const KernelTable* table : runnable_kernel_tables()) {
    SCOPED_TRACE(table->name);
    for (ElementType type : {ElementType::kF32, ElementType::kF16, ElementType::kBF16}) {
      const std::size_t width = element_bytes(type);
      constexpr std::size_t kCount = 65536;  // every 16-bit pattern
      std::vector<std::byte> bytes(kCount * width + 1);
      for (std::size_t i = 0; i < kCount; ++i) {
        const auto bits = static_cast<std::uint32_t>(i * (width == 4 ? 65521 : 1));
        std::memcpy(bytes.data() + 1 + i * width, &bits, width);
      }
      std::vector<float> expected(kCount), result(kCount);
      to_float(type, bytes.data() + 1, kCount, expected.data());
      table->to_float(type, bytes.data() + 1, result.data(), kCount);
      ASSERT_TRUE(same_bits(expected, result)) << element_name(type);
      for (std::size_t n = 1; n < 40; ++n) {
        std::vector<float> some(n + 1, kGuard);
        table->to_float(type, bytes.data() + 1, some.data(), static_cast<std::int64_t>(n));
        ASSERT_TRUE(same_bits(std::span(expected).first(n), std::span(some).first(n)));
        ASSERT_EQ(some[n], kGuard);
      }
    }
  }
}

// --- scalar against closed forms
// ----------------------------------------------------------------------------------------

TEST(Rows, RmsNormIsCloseToItsClosedForm) {
  for (std::size_t n : kLengths) {
    const std::vector<float> x = normal_floats(n, n, 2.0f);
    const std::vector<float> weight = normal_floats(n + 1, n);
    std::vector<float> out(n);
    kernel_table("scalar").rms_norm(x.data(), weight.data(), 1e-5f, static_cast<std::int64_t>(n), out.data());
    double squares = 0;
    for (float v : x) squares += static_cast<double>(v) * v;
    const double root = std::sqrt(squares / static_cast<double>(n) + 1e-5f);
    for (std::size_t i = 0; i < n; ++i) {
      const double exact = x[i] / root * weight[i];
      ASSERT_NEAR(out[i], exact, 1e-6 * std::abs(exact)) << "n " << n << " index " << i;
    }
  }
}

TEST(Rows, RopeRotatesThePairsItIsTold) {
  const float cos[] = {0.5f, 0.8f};
  const float sin[] = {0.25f, -0.6f};
  for (const KernelTable* table : runnable_kernel_tables()) {
    SCOPED_TRACE(table->name);
    float halves[] = {1, 2, 3, 4, 99};
    table->rope(halves, cos, sin, 2, false);  // pairs (1, 3) and (2, 4)
    const float expected[] = {0.5f - 0.75f, 1.6f + 2.4f, 1.5f + 0.25f, 3.2f - 1.2f, 99};
    for (int i = 0; i < 5; ++i) EXPECT_NEAR(halves[i], expected[i], 1e-6) << i;
    float neighbours[] = {1, 3, 2, 4, 99};
    table->rope(neighbours, cos, sin, 2, true);
    EXPECT_EQ(neighbours[0], halves[0]);
    EXPECT_EQ(neighbours[1], halves[2]);
    EXPECT_EQ(neighbours[2], halves[1]);
    EXPECT_EQ(neighbours[3], halves[3]);
    EXPECT_EQ(neighbours[4], 99);
  }
}

TEST(Rows, ScaleAddAndSoftcapComputeWhatTheySay) {
  for (const KernelTable* table : runnable_kernel_tables()) {
    std::vector<float> x = {1, -2, 3};
    const std::vector<float> a = {10, 20, 30};
    table->add(a.data(), x.data(), 3);
    EXPECT_EQ(x, (std::vector<float>{11, 18, 33}));
    table->scale(0.5f, x.data(), 3);
    EXPECT_EQ(x, (std::vector<float>{5.5f, 9, 16.5f}));
    table->softcap(10.0f, x.data(), 3);
    EXPECT_NEAR(x[2], 10 * std::tanh(1.65), 2e-6);
  }
}

// --- the cache
// ----------------------------------------------------------------------------------------------------------

TEST(KvWrite, PutsOnePositionWhereTheLayoutSaysAndTouchesNothingElse) {
  for (const KernelTable* table : runnable_kernel_tables()) {
    SCOPED_TRACE(table->name);
    for (ElementType type : {ElementType::kF32, ElementType::kBF16}) {
      for (std::int64_t head_dim : {2, 6, 16, 20, 64, 80, 128}) {
        const KvLayout layout{type, 1, head_dim, 32};
        for (std::int64_t p : {0, 1, 15, 16, 30, 31}) {
          std::vector<float> key = normal_floats(5, static_cast<std::size_t>(head_dim));
          const std::vector<float> value = normal_floats(6, static_cast<std::size_t>(head_dim));
          key[0] = 1.00390625f;  // halfway between two bf16 numbers: goes to the even one
          key[1] = std::nanf("");
          AlignedBuffer tiles(layout.head_tile_bytes());
          std::memset(tiles.data(), 0x5a, tiles.size());
          std::byte* values = tiles.data() + layout.key_tile_bytes();
          table->kv_write(type, head_dim, p, key.data(), value.data(), tiles.data(), values);
          AlignedBuffer expected(layout.head_tile_bytes());
          std::memset(expected.data(), 0x5a, expected.size());
          for (std::int64_t d = 0; d < head_dim; ++d) {
            const auto put = [&](std::byte* tile, std::int64_t index, float x) {
              const std::uint16_t half = float_to_bf16(x);
              if (type == ElementType::kBF16) std::memcpy(tile + index * 2, &half, 2);
              if (type == ElementType::kF32) std::memcpy(tile + index * 4, &x, 4);
            };
            put(expected.data(), layout.key_element(p, d), key[static_cast<std::size_t>(d)]);
            put(expected.data() + layout.key_tile_bytes(), layout.value_element(p, d),
                value[static_cast<std::size_t>(d)]);
          }
          ASSERT_EQ(std::memcmp(expected.data(), tiles.data(), tiles.size()), 0)
              << "head_dim " << head_dim << " position " << p;
        }
      }
    }
  }
}

}  // namespace
}  // namespace drafthorse
