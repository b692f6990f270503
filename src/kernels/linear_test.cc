#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "base/float_env.h"
#include "kernels/kernel_table.h"
#include "quant/packed_matrix.h"
#include "support/linear_contract.h"

namespace drafthorse {
namespace {

constexpr std::int64_t kSizes[] = {1, 31, 32, 33, 96, 100, 256, 1000};

/// Numbers in (-1, 1), the same on every run.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  float next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<float>(static_cast<std::int32_t>(state_ >> 32)) * 0x1p-31f;
  }
  std::vector<float> many(std::int64_t count) {
    std::vector<float> out(static_cast<std::size_t>(count));
    for (float& v : out) v = next();
    return out;
  }

 private:
  std::uint64_t state_;
};

PackedMatrix packed(const std::vector<float>& weights, std::int64_t outputs, std::int64_t cols, WeightType type) {
  PackedMatrix matrix = packed_matrix(type, outputs, cols);
  const StoredMatrix part{ElementType::kF32, outputs, cols, std::as_bytes(std::span(weights))};
  pack_tiles({&part, 1}, "weight", 0, matrix.tiles(), matrix);
  return matrix;
}

PackedMatrix random_matrix(std::int64_t outputs, std::int64_t cols, WeightType type, bool with_bias = false) {
  Numbers numbers(static_cast<std::uint64_t>(outputs * 7919 + cols));
  PackedMatrix matrix = packed(numbers.many(outputs * cols), outputs, cols, type);
  if (with_bias) {
    matrix.bias = AlignedBuffer(static_cast<std::size_t>(matrix.tiles() * kTileRows) * sizeof(float));
    std::ranges::generate(std::span(matrix.bias.as<float>(), static_cast<std::size_t>(outputs)),
                          [&] { return numbers.next(); });
  }
  return matrix;
}

/// x W^T by `table`, `together` tiles a call. Written with a stride larger than the row; what lies between must not
/// change.
std::vector<float> product(const KernelTable& table, const PackedMatrix& matrix, const std::vector<float>& x,
                           int together = 4) {
  const FloatEnv env;
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / matrix.cols;
  AlignedBuffer packed_x(table.packed_rows_bytes(matrix.type, rows, matrix.cols));
  table.pack_rows(matrix.type, x.data(), matrix.cols, rows, matrix.cols, 0, matrix.groups(), packed_x.data());
  constexpr float kUntouched = -12345.5f;
  const std::int64_t stride = matrix.rows + 3;
  std::vector<float> y(static_cast<std::size_t>(rows * stride), kUntouched);
  for (std::int64_t first = 0; first < matrix.tiles(); first += together) {
    std::int64_t tiles[4];
    const int count = static_cast<int>(std::min<std::int64_t>(together, matrix.tiles() - first));
    for (int t = 0; t < count; ++t) tiles[t] = first + t;
    table.linear({matrix.type, matrix.data.data(), matrix.tile_bytes(), matrix.groups(), tiles, count, packed_x.data(),
                  rows, matrix.bias.as<float>(), matrix.rows, y.data(), stride});
  }
  std::vector<float> out;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = y.data() + r * stride;
    out.insert(out.end(), row, row + matrix.rows);
    for (std::int64_t n = matrix.rows; n < stride; ++n)
      EXPECT_EQ(row[n], kUntouched) << table.name << " wrote past a row";
  }
  return out;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// Whether this table's bf16 products are made in pairs by vdpbf16ps, and only promised within a bound.
bool pairs_bf16(const KernelTable& table, WeightType type) {
  return type == WeightType::kBF16 && std::string(table.name) == "avx512" && cpu_features().avx512_bf16;
}

TEST(Linear, EveryTableFollowsTheContractForAnySize) {
  for (WeightType type : kWeightTypes) {
    for (std::int64_t outputs : kSizes) {
      for (std::int64_t cols : kSizes) {
        const PackedMatrix matrix = random_matrix(outputs, cols, type, outputs % 2 == 0);
        const LinearContract contract(matrix);
        const std::vector<float> x = Numbers(static_cast<std::uint64_t>(cols)).many(2 * cols);
        std::vector<float> want = contract.row(x.data());
        const std::vector<float> second = contract.row(x.data() + cols);
        want.insert(want.end(), second.begin(), second.end());
        for (const KernelTable* table : runnable_kernel_tables()) {
          if (pairs_bf16(*table, type)) continue;
          ASSERT_TRUE(same_bits(product(*table, matrix, x), want))
              << table->name << " " << weight_name(type) << " " << outputs << " x " << cols;
        }
      }
    }
  }
}

TEST(Linear, PairedBf16StaysWithinItsBound) {
  for (const KernelTable* table : runnable_kernel_tables()) {
    if (!pairs_bf16(*table, WeightType::kBF16)) continue;
    for (std::int64_t outputs : kSizes) {
      for (std::int64_t cols : kSizes) {
        const PackedMatrix matrix = random_matrix(outputs, cols, WeightType::kBF16);
        const LinearContract contract(matrix);
        const std::vector<float> x = Numbers(static_cast<std::uint64_t>(cols)).many(cols);
        const std::vector<float> scalar = product(kernel_table("scalar"), matrix, x);
        const std::vector<float> y = product(*table, matrix, x);
        for (std::int64_t n = 0; n < outputs; ++n) {
          double sum;
          double magnitude;
          contract.exact(n, x.data(), sum, magnitude);
          const auto i = static_cast<std::size_t>(n);
          ASSERT_LE(std::fabs(y[i] - sum), 2e-6 * magnitude) << outputs << " x " << cols << ", output " << n;
          ASSERT_LE(std::fabs(y[i] - scalar[i]), 2e-6 * magnitude) << outputs << " x " << cols << ", output " << n;
        }
      }
    }
  }
}

/// For 1000 products of weights and activations in (-1, 1): six standard deviations of the roundings' sum.
double tolerance_of(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return 1e-4;
    case WeightType::kF16:
      return 2e-2;
    case WeightType::kBF16:
    case WeightType::kQ8_0:
      return 2e-1;
    case WeightType::kQ6K:
      return 1.0;
    case WeightType::kQ5_0:
    case WeightType::kQ5_1:
    case WeightType::kQ5K:
      return 2.0;
    default:
      return 4.0;
  }
}

TEST(Linear, TheContractIsCloseToTheProductOfTheOriginalNumbers) {
  constexpr std::int64_t kOutputs = 64;
  constexpr std::int64_t kCols = 1000;
  const std::vector<float> weights = Numbers(5).many(kOutputs * kCols);
  const std::vector<float> x = Numbers(6).many(kCols);
  for (WeightType type : kWeightTypes) {
    const std::vector<float> y = product(kernel_table("scalar"), packed(weights, kOutputs, kCols, type), x);
    const double tolerance = tolerance_of(type);
    for (std::int64_t n = 0; n < kOutputs; ++n) {
      double want = 0;
      for (std::int64_t k = 0; k < kCols; ++k) {
        want += static_cast<double>(weights[static_cast<std::size_t>(n * kCols + k)]) * x[static_cast<std::size_t>(k)];
      }
      ASSERT_NEAR(y[static_cast<std::size_t>(n)], want, tolerance) << weight_name(type);
    }
  }
}

TEST(Linear, ARowHasTheSameBitsInAnyCompany) {
  constexpr std::int64_t kMostRows = 512;
  std::vector<std::int64_t> counts = {31, 64, kMostRows};
  for (std::int64_t rows = 1; rows <= 17; ++rows) counts.push_back(rows);
  for (WeightType type : kWeightTypes) {
    for (std::int64_t cols : {100, 300}) {
      const PackedMatrix matrix = random_matrix(161, cols, type, true);
      const std::vector<float> x = Numbers(77).many(kMostRows * cols);
      for (const KernelTable* table : runnable_kernel_tables()) {
        std::vector<float> alone;
        for (std::int64_t r = 0; r < kMostRows; ++r) {
          const std::vector<float> y = product(*table, matrix, {x.begin() + r * cols, x.begin() + (r + 1) * cols});
          alone.insert(alone.end(), y.begin(), y.end());
        }
        for (std::int64_t rows : counts) {
          const std::int64_t first = rows == kMostRows ? 0 : 9;  // not always the same rows at the same place
          const std::vector<float> y =
              product(*table, matrix, {x.begin() + first * cols, x.begin() + (first + rows) * cols});
          ASSERT_TRUE(same_bits(y, std::span(alone).subspan(static_cast<std::size_t>(first * matrix.rows), y.size())))
              << table->name << " " << weight_name(type) << " " << rows << " rows of " << cols;
        }
      }
    }
  }
}

TEST(Linear, TilesMayBeWalkedInAnyGrouping) {
  for (WeightType type : kWeightTypes) {
    const PackedMatrix matrix = random_matrix(9 * 32 + 5, 230, type, true);
    for (std::int64_t rows : {1, 7, 16, 40, 100}) {
      const std::vector<float> x = Numbers(3).many(rows * 230);
      for (const KernelTable* table : runnable_kernel_tables()) {
        const std::vector<float> one_by_one = product(*table, matrix, x, 1);
        for (int together : {2, 3, 4}) {
          ASSERT_TRUE(same_bits(product(*table, matrix, x, together), one_by_one))
              << table->name << " " << weight_name(type) << " " << rows << " rows, " << together << " tiles";
        }
      }
    }
  }
}

TEST(Linear, TilesNeedNotBeNeighbours) {
  const PackedMatrix matrix = random_matrix(8 * 32, 64, WeightType::kQ8_0);
  const std::vector<float> x = Numbers(4).many(3 * 64);
  for (const KernelTable* table : runnable_kernel_tables()) {
    const std::vector<float> want = product(*table, matrix, x);
    AlignedBuffer packed_x(table->packed_rows_bytes(matrix.type, 3, 64));
    table->pack_rows(matrix.type, x.data(), 64, 3, 64, 0, 2, packed_x.data());
    std::vector<float> y(want.size());
    for (std::int64_t i = 0; i < 2; ++i) {
      const std::int64_t tiles[] = {6 + i, i, 4 + i, 2 + i};
      table->linear({matrix.type, matrix.data.data(), matrix.tile_bytes(), 2, tiles, 4, packed_x.data(), 3, nullptr,
                     matrix.rows, y.data(), matrix.rows});
    }
    EXPECT_TRUE(same_bits(y, want)) << table->name;
  }
}

TEST(Linear, RowsMayBePackedInShares) {
  constexpr std::int64_t kCols = 230;
  for (WeightType type : kWeightTypes) {
    for (std::int64_t rows : {1, 5, 13}) {
      const std::vector<float> x = Numbers(8).many(rows * (kCols + 7));
      for (const KernelTable* table : runnable_kernel_tables()) {
        const std::size_t bytes = table->packed_rows_bytes(type, rows, kCols);
        EXPECT_EQ(bytes % 64, 0u);
        AlignedBuffer whole(bytes);
        AlignedBuffer shares(bytes);
        table->pack_rows(type, x.data(), kCols + 7, rows, kCols, 0, 8, whole.data());
        table->pack_rows(type, x.data(), kCols + 7, rows, kCols, 3, 8, shares.data());
        table->pack_rows(type, x.data(), kCols + 7, rows, kCols, 0, 3, shares.data());
        EXPECT_EQ(std::memcmp(whole.data(), shares.data(), bytes), 0) << table->name << " " << weight_name(type);
      }
    }
  }
}

TEST(Linear, IntegerProductsNeverSaturate) {
  constexpr std::int64_t kCols = 1000;
  for (WeightType type : kWeightTypes) {
    if (!is_quantized(type)) continue;
    for (float w : {-1.0f, 1.0f}) {
      std::vector<float> weights(33 * kCols, w);
      for (std::size_t i = 0; i < weights.size(); i += 16)
        weights[i] = -w;  // so that the rest is at one end of a range
      const PackedMatrix matrix = packed(weights, 33, kCols, type);
      const LinearContract contract(matrix);
      for (float value : {-3.0f, 3.0f}) {
        const std::vector<float> x(kCols, value);
        for (const KernelTable* table : runnable_kernel_tables()) {
          EXPECT_TRUE(same_bits(product(*table, matrix, x), contract.row(x.data())))
              << table->name << " " << weight_name(type) << " " << w << " * " << value;
        }
      }
    }
  }
}

/// Blocks of random bytes, as a file could hold them; f16 scales and offsets of either sign below 2.
PackedMatrix matrix_of_random_blocks(WeightType type, std::int64_t outputs, std::int64_t blocks) {
  const std::size_t block_bytes = file_block_bytes(type);
  std::vector<std::byte> bytes(static_cast<std::size_t>(outputs * blocks) * block_bytes);
  Numbers numbers(static_cast<std::uint64_t>(type) + 99);
  for (std::byte& b : bytes) b = static_cast<std::byte>(static_cast<std::int32_t>(numbers.next() * 0x1p31f) >> 16);
  std::vector<std::size_t> halves = {0};
  if (type == WeightType::kQ6K) halves = {208};
  if (type == WeightType::kQ4_1 || type == WeightType::kQ5_1) halves = {0, 2};
  if (type == WeightType::kQ4K || type == WeightType::kQ5K) halves = {0, 2};
  for (std::size_t block = 0; block < bytes.size(); block += block_bytes) {
    for (const std::size_t half : halves) bytes[block + half + 1] &= std::byte{0xbf};
  }
  PackedMatrix matrix = packed_matrix(type, outputs, blocks * file_block_cols(type));
  const StoredBlocks part{type, outputs, matrix.cols, bytes};
  pack_blocks({&part, 1}, "weight", 0, matrix.tiles(), matrix);
  return matrix;
}

TEST(Linear, BlocksOfAnyBitsAgreeAcrossTables) {
  for (WeightType type : kWeightTypes) {
    if (!is_quantized(type)) continue;
    const PackedMatrix matrix = matrix_of_random_blocks(type, 77, 3);
    const std::vector<float> x = Numbers(12).many(5 * matrix.cols);
    const std::vector<float> want = product(kernel_table("scalar"), matrix, x);
    for (std::int64_t n = 0; n < matrix.rows; ++n) {  // against doubles, activations as they are
      double sum = 0;
      double magnitude = 0;
      for (std::int64_t k = 0; k < matrix.cols; ++k) {
        sum += static_cast<double>(unpacked(matrix, n, k)) * x[static_cast<std::size_t>(k)];
        magnitude += std::fabs(static_cast<double>(unpacked(matrix, n, k)));
      }
      ASSERT_NEAR(want[static_cast<std::size_t>(n)], sum, magnitude / 254 + 1e-6)
          << weight_name(type) << " output " << n;
    }
    for (const KernelTable* table : runnable_kernel_tables()) {
      EXPECT_TRUE(same_bits(product(*table, matrix, x), want)) << table->name << " " << weight_name(type);
    }
  }
}

TEST(Linear, ExtremeButFiniteActivationsAgreeAcrossTables) {
  constexpr std::int64_t kCols = 96;
  constexpr float kDenormal = std::numeric_limits<float>::denorm_min();
  const std::vector<float> kinds = {kDenormal, -1e-39f, 1e-37f, 0x1p-120f, -0x1.fffffep-121f,
                                    1e30f,     -3e38f,  -0.0f,  0.5f};
  std::vector<float> x;
  for (float kind : kinds) {
    for (std::int64_t k = 0; k < kCols; ++k) x.push_back(k % 5 == 0 ? kind : k < 32 ? kind / 3 : k < 64 ? -0.0f : kind);
  }
  for (WeightType type : kWeightTypes) {
    const PackedMatrix matrix = random_matrix(70, kCols, type);
    const std::vector<float> want = product(kernel_table("scalar"), matrix, x);
    for (const KernelTable* table : runnable_kernel_tables()) {
      if (pairs_bf16(*table, type)) continue;
      EXPECT_TRUE(same_bits(product(*table, matrix, x), want)) << table->name << " " << weight_name(type);
    }
  }
}

TEST(Linear, TinyGroupsCountAsZerosInQ8) {
  const PackedMatrix matrix = random_matrix(32, 32, WeightType::kQ8_0);
  for (const KernelTable* table : runnable_kernel_tables()) {
    for (float y : product(*table, matrix, std::vector<float>(32, -0x1.fffffep-121f)))
      EXPECT_EQ(y, 0.0f) << table->name;
    const std::vector<float> y = product(*table, matrix, std::vector<float>(32, 0x1p-120f));
    EXPECT_NE(y, std::vector<float>(32, 0.0f)) << table->name;
  }
}

TEST(Linear, NonFiniteActivationsStayInTheirRow) {
  constexpr std::int64_t kCols = 100;
  constexpr std::int64_t kRows = 11;
  constexpr std::int64_t kBadRow = 4;
  const float infinity = std::numeric_limits<float>::infinity();
  for (WeightType type : kWeightTypes) {
    const PackedMatrix matrix = random_matrix(70, kCols, type, true);
    const std::vector<float> good = Numbers(21).many(kRows * kCols);
    for (std::uint32_t bad : {0x7fc00000u, 0x7f800001u, 0xffc12345u, std::bit_cast<std::uint32_t>(infinity),
                              std::bit_cast<std::uint32_t>(-infinity)}) {
      std::vector<float> x = good;
      for (std::int64_t k : {0, 45, 99}) {
        std::memcpy(&x[static_cast<std::size_t>(kBadRow * kCols + k)], &bad, 4);
      }
      std::vector<float> scalar_row;
      for (const KernelTable* table : runnable_kernel_tables()) {
        const std::vector<float> want = product(*table, matrix, good);
        const std::vector<float> y = product(*table, matrix, x);
        const std::vector<float> alone =
            product(*table, matrix, {x.begin() + kBadRow * kCols, x.begin() + (kBadRow + 1) * kCols});
        for (std::int64_t r = 0; r < kRows; ++r) {
          const auto offset = static_cast<std::size_t>(r * matrix.rows);
          const auto size = static_cast<std::size_t>(matrix.rows);
          const auto& reference = r == kBadRow ? alone : want;
          EXPECT_TRUE(same_bits(std::span(y).subspan(offset, size),
                                std::span(reference).subspan(r == kBadRow ? 0 : offset, size)))
              << table->name << " " << weight_name(type) << " row " << r;
        }
        for (float value : alone) EXPECT_FALSE(std::isfinite(value)) << table->name << " " << weight_name(type);
        if (scalar_row.empty()) scalar_row = alone;
        if (!pairs_bf16(*table, type)) {
          EXPECT_TRUE(same_bits(alone, scalar_row)) << table->name << " " << weight_name(type);
        }
      }
    }
  }
}

}  // namespace
}  // namespace drafthorse
