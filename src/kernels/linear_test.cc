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

namespace drafthorse {
namespace {

constexpr WeightType kAllTypes[] = {WeightType::kF32, WeightType::kF16, WeightType::kBF16, WeightType::kQ8_0};
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

/// The numeric contract written down once more, output by output, from the matrix' unpacked values.
class Contract {
 public:
  explicit Contract(const PackedMatrix& matrix) : matrix_(matrix) {
    for (std::int64_t n = 0; n < matrix.rows; ++n) {
      for (std::int64_t k = 0; k < padded(); ++k) weights_.push_back(unpacked(matrix, n, k));
    }
  }

  std::vector<float> row(const float* x) const {
    std::vector<float> values(x, x + matrix_.cols);
    values.resize(static_cast<std::size_t>(padded()), 0.0f);
    std::vector<float> y;
    for (std::int64_t n = 0; n < matrix_.rows; ++n) {
      const float sum = matrix_.type == WeightType::kQ8_0 ? integer_sum(n, values) : float_sum(n, values);
      y.push_back(matrix_.bias.size() == 0 ? sum : sum + matrix_.bias.as<float>()[n]);
    }
    return y;
  }

  /// The exact product and the sum of magnitudes, activations rounded to bf16 for bf16 weights.
  void exact(std::int64_t n, const float* x, double& sum, double& magnitude) const {
    sum = magnitude = 0;
    for (std::int64_t k = 0; k < matrix_.cols; ++k) {
      const double term = static_cast<double>(weight(n, k)) * activation(x[k]);
      sum += term;
      magnitude += std::fabs(term);
    }
  }

 private:
  std::int64_t padded() const { return matrix_.groups() * kGroup; }
  float weight(std::int64_t n, std::int64_t k) const { return weights_[static_cast<std::size_t>(n * padded() + k)]; }
  float activation(float x) const { return matrix_.type == WeightType::kBF16 ? bf16_to_float(float_to_bf16(x)) : x; }

  float float_sum(std::int64_t n, const std::vector<float>& x) const {
    float sum = 0;
    for (std::int64_t k = 0; k < padded(); ++k)
      sum = std::fma(weight(n, k), activation(x[static_cast<std::size_t>(k)]), sum);
    return sum;
  }

  float integer_sum(std::int64_t n, const std::vector<float>& x) const {
    float sum = 0;
    for (std::int64_t g = 0; g < matrix_.groups(); ++g) {
      const float* group = x.data() + g * kGroup;
      float amax = 0;
      for (std::int64_t k = 0; k < kGroup; ++k) amax = std::max(amax, std::fabs(group[k]));
      const float inverse = amax > 0 ? 127.0f / amax : 0.0f;
      const std::byte* block = matrix_.data.data() + static_cast<std::size_t>(n / kTileRows) * matrix_.tile_bytes() +
                               static_cast<std::size_t>(g) * group_bytes(matrix_.type);
      const float scale = f16_to_float(reinterpret_cast<const std::uint16_t*>(block)[n % kTileRows]);
      std::int64_t dot = 0;
      for (std::int64_t k = 0; k < kGroup; ++k) {
        const double w = scale == 0 ? 0.0 : static_cast<double>(weight(n, g * kGroup + k)) / scale;
        dot += static_cast<std::int64_t>(w) * static_cast<std::int64_t>(std::nearbyint(group[k] * inverse));
      }
      sum = std::fma(static_cast<float>(dot), scale * (amax / 127.0f), sum);
    }
    return sum;
  }

  const PackedMatrix& matrix_;
  std::vector<float> weights_;
};

TEST(Linear, EveryTableFollowsTheContractForAnySize) {
  for (WeightType type : kAllTypes) {
    for (std::int64_t outputs : kSizes) {
      for (std::int64_t cols : kSizes) {
        const PackedMatrix matrix = random_matrix(outputs, cols, type, outputs % 2 == 0);
        const Contract contract(matrix);
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
        const Contract contract(matrix);
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

TEST(Linear, TheContractIsCloseToTheProductOfTheOriginalNumbers) {
  constexpr std::int64_t kOutputs = 64;
  constexpr std::int64_t kCols = 1000;
  const std::vector<float> weights = Numbers(5).many(kOutputs * kCols);
  const std::vector<float> x = Numbers(6).many(kCols);
  for (WeightType type : kAllTypes) {
    const std::vector<float> y = product(kernel_table("scalar"), packed(weights, kOutputs, kCols, type), x);
    const double tolerance = type == WeightType::kF32 ? 1e-4 : type == WeightType::kF16 ? 2e-2 : 2e-1;
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
  for (WeightType type : kAllTypes) {
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
  for (WeightType type : kAllTypes) {
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
  for (WeightType type : kAllTypes) {
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
  for (float w : {-1.0f, 1.0f}) {
    const PackedMatrix matrix = packed(std::vector<float>(33 * kCols, w), 33, kCols, WeightType::kQ8_0);
    const Contract contract(matrix);
    for (float value : {-3.0f, 3.0f}) {
      const std::vector<float> x(kCols, value);
      for (const KernelTable* table : runnable_kernel_tables()) {
        EXPECT_TRUE(same_bits(product(*table, matrix, x), contract.row(x.data())))
            << table->name << " " << w << " * " << value;
      }
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
  for (WeightType type : kAllTypes) {
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
  for (WeightType type : kAllTypes) {
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
