#include "ops/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "ops/machine.h"
#include "tensor/aligned_buffer.h"
#include "tensor/arena.h"

namespace drafthorse {
namespace {

std::vector<float> random_values(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(splitmix64(seed, static_cast<std::uint64_t>(i)) >> 40) * 0x1p-23f - 1.0f);
  return values;
}

PackedMatrix pack(WeightType type, std::int64_t rows, std::int64_t cols, const std::vector<float>& values) {
  PackedMatrix matrix = packed_matrix(type, rows, cols);
  const StoredMatrix stored{ElementType::kF32, rows, cols, std::as_bytes(std::span(values))};
  pack_tiles({&stored, 1}, "w", 0, matrix.tiles(), matrix);
  return matrix;
}

std::vector<float> apply(const PackedMatrix& weight, const std::vector<float>& x, std::int64_t rows,
                         const ExecContext& exec) {
  Arena arena;
  std::vector<float> y(static_cast<std::size_t>(rows * weight.rows), NAN);
  const ConstRows in{x.data(), rows, weight.cols, weight.cols};
  std::byte* buffer = arena.bytes(packed_rows_bytes(weight.type, rows, weight.cols, exec));
  linear(weight, pack_rows(in, weight.type, buffer, exec), {y.data(), rows, weight.rows, weight.rows}, exec);
  return y;
}

TEST(Linear, IsTheMatrixProductWithItsBias) {
  Machine machine(2);
  constexpr std::int64_t kRows = 5, kOutputs = 301, kInputs = 70;
  const std::vector<float> w = random_values(kOutputs * kInputs, 1);
  const std::vector<float> x = random_values(kRows * kInputs, 2);
  PackedMatrix weight = pack(WeightType::kF32, kOutputs, kInputs, w);
  weight.bias = AlignedBuffer(static_cast<std::size_t>(weight.tiles() * kTileRows) * sizeof(float));
  for (std::int64_t n = 0; n < kOutputs; ++n) weight.bias.as<float>()[n] = static_cast<float>(n);
  const std::vector<float> y = apply(weight, x, kRows, machine.exec());
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t n = 0; n < kOutputs; ++n) {
      double sum = static_cast<double>(n);
      for (std::int64_t k = 0; k < kInputs; ++k)
        sum += static_cast<double>(w[static_cast<std::size_t>(n * kInputs + k)]) *
               x[static_cast<std::size_t>(r * kInputs + k)];
      ASSERT_NEAR(y[static_cast<std::size_t>(r * kOutputs + n)], sum, 5e-5) << r << ", " << n;
    }
  }
}

TEST(Linear, RowsHaveTheSameBitsWhateverTheirNumberAndTheThreads) {
  constexpr std::int64_t kMost = 40;
  for (const std::int64_t outputs : {1, 31, 96, 1000}) {
    for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kBF16, WeightType::kQ8_0}) {
      constexpr std::int64_t kInputs = 100;
      const PackedMatrix weight = pack(type, outputs, kInputs, random_values(outputs * kInputs, 3));
      const std::vector<float> x = random_values(kMost * kInputs, 4);
      Machine one(1);
      const std::vector<float> expected = apply(weight, x, kMost, one.exec());
      for (const int threads : {1, 2, 5}) {
        Machine machine(threads);
        for (const std::int64_t rows : {1, 2, 4, 7, 16, 33}) {
          const std::vector<float> y = apply(weight, x, rows, machine.exec());
          ASSERT_TRUE(std::equal(y.begin(), y.end(), expected.begin()))
              << weight_name(type) << ", " << outputs << " outputs, " << rows << " rows, " << threads << " threads";
        }
      }
    }
  }
}

TEST(Linear, OnePackingFeedsSeveralMatrices) {
  Machine machine(2);
  const std::vector<float> x = random_values(3 * 64, 5);
  const PackedMatrix a = pack(WeightType::kBF16, 40, 64, random_values(40 * 64, 6));
  const PackedMatrix b = pack(WeightType::kBF16, 33, 64, random_values(33 * 64, 7));
  Arena arena;
  std::byte* buffer = arena.bytes(packed_rows_bytes(WeightType::kBF16, 3, 64, machine.exec()));
  const PackedRows packed = pack_rows({x.data(), 3, 64, 64}, WeightType::kBF16, buffer, machine.exec());
  std::vector<float> ya(3 * 40), yb(3 * 33);
  linear(a, packed, {ya.data(), 3, 40, 40}, machine.exec());
  linear(b, packed, {yb.data(), 3, 33, 33}, machine.exec());
  EXPECT_EQ(ya, apply(a, x, 3, machine.exec()));
  EXPECT_EQ(yb, apply(b, x, 3, machine.exec()));
}

TEST(Linear, WrongShapesAreBugs) {
  Machine machine(1);
  const PackedMatrix weight = pack(WeightType::kF32, 32, 64, random_values(32 * 64, 6));
  std::vector<float> y(32);
  AlignedBuffer buffer(1 << 16);
  const std::vector<float> x(64);
  const PackedRows good = pack_rows({x.data(), 1, 64, 64}, WeightType::kF32, buffer.data(), machine.exec());
  EXPECT_THROW(linear(weight, {WeightType::kBF16, 1, 64, buffer.data()}, {y.data(), 1, 32, 32}, machine.exec()),
               InternalError);
  EXPECT_THROW(linear(weight, {WeightType::kF32, 1, 63, buffer.data()}, {y.data(), 1, 32, 32}, machine.exec()),
               InternalError);
  EXPECT_THROW(linear(weight, good, {y.data(), 1, 31, 31}, machine.exec()), InternalError);
  EXPECT_THROW(linear(weight, good, {y.data(), 2, 32, 32}, machine.exec()), InternalError);
}

}  // namespace
}  // namespace drafthorse
