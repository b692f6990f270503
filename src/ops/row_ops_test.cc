#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "ops/activation.h"
#include "ops/embedding.h"
#include "ops/machine.h"
#include "ops/norm.h"
#include "ops/row_ranges.h"

namespace drafthorse {
namespace {

/// Rows with a stride of their own.
struct Matrix {
  std::int64_t rows, cols, stride;
  std::vector<float> values;

  Matrix(std::int64_t r, std::int64_t c, std::uint64_t seed = 0)
      : rows(r), cols(c), stride(c + 3), values(static_cast<std::size_t>(r * stride), -99.0f) {
    for (std::int64_t i = 0; seed != 0 && i < r; ++i) {
      for (std::int64_t k = 0; k < c; ++k) {
        at(i, k) = static_cast<float>(splitmix64(seed, static_cast<std::uint64_t>(i * c + k)) >> 40) * 0x1p-22f - 2.0f;
      }
    }
  }
  float& at(std::int64_t r, std::int64_t c) { return values[static_cast<std::size_t>(r * stride + c)]; }
  Rows view() { return {values.data(), rows, cols, stride}; }
};

// Both sides of the size from which work is shared.
const std::vector<std::int64_t> kRowCounts = {1, 3, 200};

TEST(RowOps, NormIsTheRootMeanSquareNorm) {
  Machine machine(3);
  for (const std::int64_t rows : kRowCounts) {
    Matrix x(rows, 300, 1), a(rows, 300, 2), out(rows, 300), sum_out(rows, 300);
    const std::vector<float> weight(300, 1.5f);
    Matrix sum = x;
    rms_norm(x.view(), weight.data(), 0.01f, out.view(), machine.exec());
    add_rms_norm(a.view(), sum.view(), weight.data(), 0.01f, sum_out.view(), machine.exec());
    for (std::int64_t r = 0; r < rows; ++r) {
      double squares = 0.0, sum_squares = 0.0;
      for (std::int64_t c = 0; c < 300; ++c) {
        EXPECT_EQ(sum.at(r, c), x.at(r, c) + a.at(r, c));
        squares += static_cast<double>(x.at(r, c)) * x.at(r, c);
        sum_squares += static_cast<double>(sum.at(r, c)) * sum.at(r, c);
      }
      for (std::int64_t c = 0; c < 300; ++c) {
        ASSERT_NEAR(out.at(r, c), 1.5 * x.at(r, c) / std::sqrt(squares / 300 + 0.01), 1e-5);
        ASSERT_NEAR(sum_out.at(r, c), 1.5 * sum.at(r, c) / std::sqrt(sum_squares / 300 + 0.01), 1e-5);
      }
      EXPECT_EQ(out.values[static_cast<std::size_t>(r * out.stride + 300)], -99.0f) << "past the row";
    }
  }
}

TEST(RowOps, SiluMultiplyMayWriteOverTheGate) {
  Machine machine(3);
  for (const std::int64_t rows : kRowCounts) {
    Matrix gate_up(rows, 2 * 2100, 3);
    Matrix original = gate_up;
    silu_multiply(gate_up.view(), {gate_up.values.data(), rows, 2100, gate_up.stride}, machine.exec());
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < 2100; ++c) {
        const double gate = original.at(r, c);
        ASSERT_NEAR(gate_up.at(r, c), gate / (1.0 + std::exp(-gate)) * original.at(r, 2100 + c), 1e-5)
            << r << ", " << c;
        ASSERT_EQ(gate_up.at(r, 2100 + c), original.at(r, 2100 + c));
      }
    }
  }
}

TEST(RowOps, SoftplusGatesWholeHeads) {
  Machine machine(3);
  for (const std::int64_t rows : kRowCounts) {
    Matrix gate(rows, 4, 5), x(rows, 4 * 25, 6);
    Matrix gates = gate, original = x;
    softplus_gate(gate.view(), x.view(), machine.exec());
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < 100; ++c) {
        ASSERT_NEAR(x.at(r, c), std::log1p(std::exp(gates.at(r, c / 25))) * original.at(r, c), 1e-5);
      }
    }
  }
}

TEST(RowOps, EmbeddingRowsAreReadInTheirOwnType) {
  Machine machine(2);
  const std::vector<float> singles = {0, 1, 2, 3, 4, 5};
  const std::vector<double> doubles = {0, 1, 2, 3, 4, 5};
  std::vector<std::uint16_t> halves, brains;
  for (const float v : singles) {
    halves.push_back(float_to_f16(v));
    brains.push_back(float_to_bf16(v));
  }
  const std::vector<StoredMatrix> tables = {{ElementType::kF32, 3, 2, std::as_bytes(std::span(singles))},
                                            {ElementType::kF64, 3, 2, std::as_bytes(std::span(doubles))},
                                            {ElementType::kF16, 3, 2, std::as_bytes(std::span(halves))},
                                            {ElementType::kBF16, 3, 2, std::as_bytes(std::span(brains))}};
  for (const StoredMatrix& table : tables) {
    Matrix out(4, 2);
    embed(table, std::vector<std::int32_t>{2, 0, 1, 2}, out.view(), machine.exec());
    const std::vector<float> expected = {4, 5, 0, 1, 2, 3, 4, 5};
    for (std::int64_t i = 0; i < 8; ++i) EXPECT_EQ(out.at(i / 2, i % 2), expected[static_cast<std::size_t>(i)]);
    EXPECT_THROW(embed(table, std::vector<std::int32_t>{0, 1, 3, 0}, out.view(), machine.exec()), InternalError);
    EXPECT_THROW(embed(table, std::vector<std::int32_t>{0, 1, -1, 0}, out.view(), machine.exec()), InternalError);
  }
}

TEST(RowOps, RangesCoverEverythingOnce) {
  Machine machine(4);
  for (const std::int64_t count : {0, 1, 5, 100}) {
    for (const std::int64_t each : {1, 1000, 100000}) {
      std::vector<int> seen(static_cast<std::size_t>(count), 0);
      for_ranges(machine.exec(), count, each, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      EXPECT_EQ(seen, std::vector<int>(static_cast<std::size_t>(count), 1));
    }
  }
}

}  // namespace
}  // namespace drafthorse
