#include "quant/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "quant/packed_matrix.h"

namespace drafthorse {
namespace {

std::vector<WeightType> quantized_types() {
  std::vector<WeightType> types;
  std::ranges::copy_if(kWeightTypes, std::back_inserter(types), is_quantized);
  return types;
}

/// A number in (-1, 1).
float uniform(std::uint64_t seed, std::uint64_t i) {
  return static_cast<float>(static_cast<double>(splitmix64(seed, i) >> 11) * 0x1p-52 - 1.0);
}

/// Random bytes with finite f16 scales: rows of blocks as a file holds them.
std::vector<std::byte> random_blocks(WeightType type, std::int64_t count, std::uint64_t seed) {
  const std::size_t size = file_block_bytes(type);
  std::vector<std::byte> bytes(size * static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(splitmix64(seed, i) >> 56);
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    for (const std::size_t upper : {1, 3, 209}) {  // the top bytes of all f16 there are, and some others
      if (upper < size) bytes[at + upper] &= std::byte{0xbf};
    }
  }
  return bytes;
}

/// Element i of a block, straight from the format's description and in its order of float32 operations. Shares nothing
/// with the code under test but f16_to_float.
float dequantized(WeightType type, const std::byte* block, int i) {
  const auto u8 = [&](int at) { return std::to_integer<int>(block[at]); };
  const auto f16 = [&](int at) { return f16_to_float(static_cast<std::uint16_t>(u8(at) | u8(at + 1) << 8)); };
  const auto nibble = [&](int at) { return i < 16 ? u8(at + i) & 15 : u8(at + i - 16) >> 4; };
  const auto fifth = [&](int at) {
    const auto qh = static_cast<std::uint32_t>(u8(at) | u8(at + 1) << 8 | u8(at + 2) << 16) |
                    static_cast<std::uint32_t>(u8(at + 3)) << 24;
    return static_cast<int>(qh >> i & 1) << 4;
  };
  const int j = i / 32;
  const int l = i % 32;
  const auto k_scale = [&] { return j < 4 ? u8(4 + j) & 63 : (u8(4 + j + 4) & 15) | (u8(4 + j - 4) >> 6) << 4; };
  const auto k_min = [&] { return j < 4 ? u8(4 + j + 4) & 63 : (u8(4 + j + 4) >> 4) | (u8(4 + j) >> 6) << 4; };
  const auto k_nibble = [&](int at) { return u8(at + 32 * (i / 64) + l) >> (4 * (j % 2)) & 15; };
  const auto f = [](int v) { return static_cast<float>(v); };
  switch (type) {
    case WeightType::kQ8_0:
      return f(static_cast<std::int8_t>(u8(2 + i))) * f16(0);
    case WeightType::kQ4_0:
      return f(nibble(2) - 8) * f16(0);
    case WeightType::kQ4_1:
      return f(nibble(4)) * f16(0) + f16(2);
    case WeightType::kQ5_0:
      return f((nibble(6) | fifth(2)) - 16) * f16(0);
    case WeightType::kQ5_1:
      return f(nibble(8) | fifth(4)) * f16(0) + f16(2);
    case WeightType::kQ4K:
      return f16(0) * f(k_scale()) * f(k_nibble(16)) - f16(2) * f(k_min());
    case WeightType::kQ5K:
      return f16(0) * f(k_scale()) * f(k_nibble(48) | (u8(16 + l) >> j & 1) << 4) - f16(2) * f(k_min());
    case WeightType::kQ6K: {
      const int h = i / 128;
      const int k = i % 128 / 32;
      const int low = u8(64 * h + 32 * (k % 2) + l) >> (4 * (k / 2)) & 15;
      const int high = u8(128 + 32 * h + l) >> (2 * k) & 3;
      return f16(208) * f(static_cast<std::int8_t>(u8(192 + i / 16))) * f((low | high << 4) - 32);
    }
    default:
      ADD_FAILURE() << weight_name(type);
      return 0;
  }
}

TEST(PackBlocks, KeepsEveryValueOfAFileExactly) {
  for (const WeightType type : quantized_types()) {
    const std::int64_t block_cols = file_block_cols(type);
    constexpr std::int64_t kRows = 45;
    constexpr std::int64_t kBlocks = 3;
    const std::vector<std::byte> bytes = random_blocks(type, kRows * kBlocks, 17);
    const std::size_t split = file_block_bytes(type) * kBlocks * 20;
    const StoredBlocks parts[] = {{type, 20, kBlocks * block_cols, std::span(bytes).first(split)},
                                  {type, kRows - 20, kBlocks * block_cols, std::span(bytes).subspan(split)}};
    PackedMatrix matrix = packed_matrix(type, kRows, kBlocks * block_cols);
    pack_blocks(parts, "weight", 1, 2, matrix);
    pack_blocks(parts, "weight", 0, 1, matrix);
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t c = 0; c < kBlocks * block_cols; ++c) {
        const std::byte* block =
            bytes.data() + static_cast<std::size_t>(r * kBlocks + c / block_cols) * file_block_bytes(type);
        ASSERT_EQ(unpacked(matrix, r, c), dequantized(type, block, static_cast<int>(c % block_cols)))
            << weight_name(type) << " " << r << ", " << c;
      }
    }
    for (std::int64_t r = kRows; r < 64; ++r) {
      for (std::int64_t c = 0; c < kBlocks * block_cols; ++c) ASSERT_EQ(unpacked(matrix, r, c), 0.0f);
    }
  }
}

TEST(PackBlocks, AScaleThatIsNotFiniteIsRefusedByNameAndPlace) {
  for (const WeightType type : quantized_types()) {
    std::vector<std::byte> bytes = random_blocks(type, 40 * 2, 3);
    const std::size_t scale = type == WeightType::kQ6K ? 208 : 0;
    bytes[(35 * 2 + 1) * file_block_bytes(type) + scale + 1] = std::byte{0x7c};
    PackedMatrix matrix = packed_matrix(type, 40, 2 * file_block_cols(type));
    const StoredBlocks part{type, 40, matrix.cols, bytes};
    try {
      pack_blocks({&part, 1}, "blk.3.ffn_up.weight", 0, 2, matrix);
      ADD_FAILURE() << weight_name(type);
    } catch (const Error& error) {
      const std::string from = std::to_string(file_block_cols(type));
      EXPECT_NE(std::string(error.what()).find("blk.3.ffn_up.weight: row 35, columns " + from), std::string::npos)
          << error.what();
    }
  }
}

/// What `type` makes of `values`, which fill part of a block.
std::vector<float> round_trip(WeightType type, const std::vector<float>& values) {
  const auto cols = static_cast<std::int64_t>(values.size());
  PackedMatrix matrix = packed_matrix(type, 1, cols);
  const StoredMatrix part{ElementType::kF32, 1, cols, std::as_bytes(std::span(values))};
  pack_tiles({&part, 1}, "weight", 0, 1, matrix);
  std::vector<float> out;
  for (std::int64_t c = 0; c < cols; ++c) out.push_back(unpacked(matrix, 0, c));
  return out;
}

/// The largest error of one value, in units of the largest magnitude of its group of 32: half a step of the integers,
/// one at the end of the range that reaches less far, and what rounding the scales adds.
double most_error(WeightType type) {
  switch (type) {
    case WeightType::kQ8_0:
      return 0.5 / 127 + 0.001;
    case WeightType::kQ4_0:
      return 1.0 / 8 + 0.001;
    case WeightType::kQ4_1:
      return 1.0 / 15 + 0.001;
    case WeightType::kQ5_0:
      return 1.0 / 16 + 0.001;
    case WeightType::kQ5_1:
      return 1.0 / 31 + 0.001;
    case WeightType::kQ4K:
      return 1.0 / 15 + 0.04;
    case WeightType::kQ5K:
      return 1.0 / 31 + 0.03;
    default:
      return 1.0 / 32 + 0.01;
  }
}

TEST(Quantize, NoValueIsFartherOffThanTheStepsAllow) {
  for (const WeightType type : quantized_types()) {
    for (const std::size_t cols : {1u, 15u, 32u, 47u, 255u, 256u, 700u}) {
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        for (const float size : {1e-2f, 1.0f, 100.0f}) {
          std::vector<float> values(cols);
          for (std::size_t i = 0; i < cols; ++i) values[i] = size * uniform(seed, i);
          const std::vector<float> got = round_trip(type, values);
          for (std::size_t i = 0; i < cols; ++i) {
            ASSERT_NEAR(got[i], values[i], size * most_error(type)) << weight_name(type) << " " << cols << ": " << i;
          }
        }
      }
    }
  }
}

/// Root mean square error over that of the values, which are bell-shaped as trained weights are.
double relative_error(WeightType type) {
  double error = 0;
  double energy = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<float> values(1024);
    for (std::size_t i = 0; i < values.size(); ++i) {
      float sum = 0;
      for (std::uint64_t k = 0; k < 12; ++k) sum += uniform(seed, i * 12 + k);
      values[i] = 0.02f * sum;
    }
    const std::vector<float> got = round_trip(type, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      error += std::pow(static_cast<double>(got[i]) - values[i], 2);
      energy += std::pow(static_cast<double>(values[i]), 2);
    }
  }
  return std::sqrt(error / energy);
}

TEST(Quantize, MoreBitsAreCloser) {
  EXPECT_LT(relative_error(WeightType::kQ8_0), 0.0065);
  EXPECT_LT(relative_error(WeightType::kQ6K), 0.02);
  EXPECT_LT(relative_error(WeightType::kQ5K), 0.04);
  EXPECT_LT(relative_error(WeightType::kQ5_1), 0.04);
  EXPECT_LT(relative_error(WeightType::kQ5_0), 0.05);
  EXPECT_LT(relative_error(WeightType::kQ4K), 0.08);
  EXPECT_LT(relative_error(WeightType::kQ4_1), 0.085);
  EXPECT_LT(relative_error(WeightType::kQ4_0), 0.1);
}

TEST(Quantize, WhatATypeHoldsComesBackExactly) {
  // The peak at the far end of a symmetric range; 0 and the top of an affine one; powers of two as scales.
  std::vector<float> symmetric;
  std::vector<float> affine;
  for (int i = 0; i < 32; ++i) {
    symmetric.push_back(0.25f * static_cast<float>(i % 16 - 8));
    affine.push_back(0.5f * static_cast<float>(i % 16) - 1.5f);
  }
  EXPECT_EQ(round_trip(WeightType::kQ4_0, symmetric), symmetric);
  EXPECT_EQ(round_trip(WeightType::kQ4_1, affine), affine);
  symmetric.clear();
  affine.clear();
  for (int i = 0; i < 32; ++i) {
    symmetric.push_back(-0.25f * static_cast<float>(i - 16));
    affine.push_back(0.5f * static_cast<float>(i) - 1.5f);
  }
  EXPECT_EQ(round_trip(WeightType::kQ5_0, symmetric), symmetric);
  EXPECT_EQ(round_trip(WeightType::kQ5_1, affine), affine);
}

TEST(Quantize, ZerosAndTinyValuesAreZeros) {
  for (const WeightType type : quantized_types()) {
    for (const float tiny : {0.0f, 1e-9f, -1e-40f}) {
      for (const float value : round_trip(type, std::vector<float>(300, tiny))) {
        ASSERT_EQ(value, 0.0f) << weight_name(type) << " " << tiny;
      }
    }
  }
}

TEST(Quantize, WhatLiesPastTheValuesHasNoSay) {
  for (const WeightType type : quantized_types()) {
    std::vector<float> values(static_cast<std::size_t>(file_block_cols(type)), 0.0f);
    for (std::size_t i = 0; i < 20; ++i) values[i] = 3.0f + 0.1f * uniform(4, i);  // far from the zeros after it
    QuantizedBlock part;
    ASSERT_TRUE(quantize(type, values.data(), 20, part));
    for (std::size_t i = 20; i < values.size(); ++i) values[i] = values[i % 20];
    QuantizedBlock whole;
    ASSERT_TRUE(quantize(type, values.data(), static_cast<std::int64_t>(values.size()), whole));
    if (block_groups(type) == 1) {
      EXPECT_EQ(part.d, whole.d) << weight_name(type);
      EXPECT_EQ(part.m, whole.m) << weight_name(type);
      for (int i = 0; i < 20; ++i) EXPECT_EQ(part.q[i], whole.q[i]) << weight_name(type) << " " << i;
    } else {
      for (int g = 2; g < 8; ++g) EXPECT_EQ(part.offset[g], 0) << weight_name(type);
      for (int g = 2; g < (type == WeightType::kQ6K ? 16 : 8); ++g) EXPECT_EQ(part.scale[g], 0) << weight_name(type);
    }
  }
}

TEST(Quantize, WhatDoesNotFitIsRefused) {
  for (const WeightType type : quantized_types()) {
    std::vector<float> values(static_cast<std::size_t>(file_block_cols(type)), 1.0f);
    QuantizedBlock block;
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 3e38f, -3e38f}) {
      values[9] = bad;
      EXPECT_FALSE(quantize(type, values.data(), file_block_cols(type), block)) << weight_name(type) << " " << bad;
      EXPECT_TRUE(quantize(type, values.data(), 9, block)) << weight_name(type);
    }
  }
}

}  // namespace
}  // namespace drafthorse
