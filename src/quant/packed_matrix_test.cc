#include "quant/packed_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace drafthorse {
namespace {

/// Numbers of many sizes, the same on every run.
float sample(std::int64_t i) {
  const auto bits = static_cast<std::uint32_t>(i * 2654435761u + 12345u) ^ static_cast<std::uint32_t>(i << 9);
  const float unit = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31f;
  return unit * std::exp2(static_cast<float>(i % 7) - 5.0f);
}

/// A matrix as a file would hold it.
struct FileMatrix {
  ElementType type;
  std::int64_t rows;
  std::int64_t cols;
  std::vector<std::byte> bytes;

  StoredMatrix stored() const { return {type, rows, cols, bytes}; }
  float at(std::int64_t row, std::int64_t col) const {
    float value;
    to_float(type, bytes.data() + static_cast<std::size_t>(row * cols + col) * element_bytes(type), 1, &value);
    return value;
  }
  void set(std::int64_t row, std::int64_t col, double value) {
    std::byte* place = bytes.data() + static_cast<std::size_t>(row * cols + col) * element_bytes(type);
    const auto single = static_cast<float>(value);
    const std::uint16_t half = type == ElementType::kF16 ? float_to_f16(single) : float_to_bf16(single);
    if (type == ElementType::kF64) std::memcpy(place, &value, 8);
    if (type == ElementType::kF32) std::memcpy(place, &single, 4);
    if (element_bytes(type) == 2) std::memcpy(place, &half, 2);
  }
};

FileMatrix file_matrix(ElementType type, std::int64_t rows, std::int64_t cols, std::int64_t seed = 0) {
  FileMatrix m{type, rows, cols, std::vector<std::byte>(static_cast<std::size_t>(rows * cols) * element_bytes(type))};
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) m.set(r, c, sample(seed + r * cols + c));
  }
  return m;
}

PackedMatrix packed(const FileMatrix& file, WeightType type) {
  PackedMatrix matrix = packed_matrix(type, file.rows, file.cols);
  const StoredMatrix parts[] = {file.stored()};
  pack_tiles(parts, "weight", 0, matrix.tiles(), matrix);
  return matrix;
}

/// The q8_0 rule written out for one group.
std::vector<float> quantized_by_formula(const std::vector<float>& group) {
  float largest = 0;
  for (float w : group) largest = std::fmax(largest, std::fabs(w));
  const float scale = f16_to_float(float_to_f16(largest / 127.0f));
  std::vector<float> out;
  for (float w : group) {
    const float q = scale == 0 ? 0.0f : std::fmin(127.0f, std::fmax(-127.0f, std::nearbyint(w / scale)));
    out.push_back(scale * q);
  }
  return out;
}

float rounded(WeightType type, float value) {
  if (type == WeightType::kF16) return f16_to_float(float_to_f16(value));
  if (type == WeightType::kBF16) return bf16_to_float(float_to_bf16(value));
  return value;
}

TEST(WeightType, NamesComeBackAsTheirTypes) {
  for (WeightType type : kWeightTypes) EXPECT_EQ(weight_type(weight_name(type)), type);
  EXPECT_EQ(weight_type("q8"), std::nullopt);
  EXPECT_EQ(weight_type(""), std::nullopt);
}

TEST(WeightType, ABlockIsItsScalesAndData) {
  EXPECT_EQ(group_bytes(WeightType::kF32), 4096u);
  EXPECT_EQ(group_bytes(WeightType::kF16), 2048u);
  EXPECT_EQ(group_bytes(WeightType::kBF16), 2048u);
  EXPECT_EQ(group_bytes(WeightType::kQ8_0), 1088u);
  EXPECT_EQ(group_bytes(WeightType::kQ4_0), 32u * 18);
  EXPECT_EQ(group_bytes(WeightType::kQ4_1), 32u * 20);
  EXPECT_EQ(group_bytes(WeightType::kQ5_0), 32u * 22);
  EXPECT_EQ(group_bytes(WeightType::kQ5_1), 32u * 24);
  EXPECT_EQ(group_bytes(WeightType::kQ4K) * 8, 32u * 148);  // scales of 6 bits in bytes: 4 more than the file's 144
  EXPECT_EQ(group_bytes(WeightType::kQ5K) * 8, 32u * 180);
  EXPECT_EQ(group_bytes(WeightType::kQ6K) * 8, 32u * 210);
}

TEST(WeightType, ColumnsArePaddedToWholeBlocks) {
  EXPECT_EQ(padded_groups(WeightType::kQ4_0, 33), 2);
  EXPECT_EQ(padded_groups(WeightType::kQ4K, 1), 8);
  EXPECT_EQ(padded_groups(WeightType::kQ6K, 256), 8);
  EXPECT_EQ(padded_groups(WeightType::kQ5K, 257), 16);
}

TEST(PackedMatrix, FloatTypesKeepEveryElementRoundedOnce) {
  for (ElementType stored : {ElementType::kF64, ElementType::kF32, ElementType::kF16, ElementType::kBF16}) {
    for (WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kBF16}) {
      for (auto [rows, cols] : {std::pair{1, 1}, {31, 33}, {32, 32}, {70, 95}, {64, 100}}) {
        const FileMatrix file = file_matrix(stored, rows, cols);
        const PackedMatrix matrix = packed(file, type);
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t c = 0; c < cols; ++c) ASSERT_EQ(unpacked(matrix, r, c), rounded(type, file.at(r, c)));
        }
      }
    }
  }
}

TEST(PackedMatrix, Q8FollowsTheFormula) {
  for (ElementType stored : {ElementType::kF32, ElementType::kBF16}) {
    for (auto [rows, cols] : {std::pair{1, 1}, {33, 31}, {32, 64}, {40, 100}}) {
      const FileMatrix file = file_matrix(stored, rows, cols);
      const PackedMatrix matrix = packed(file, WeightType::kQ8_0);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t begin = 0; begin < cols; begin += kGroup) {
          std::vector<float> group;
          for (std::int64_t c = begin; c < std::min<std::int64_t>(cols, begin + kGroup); ++c)
            group.push_back(file.at(r, c));
          const std::vector<float> want = quantized_by_formula(group);
          for (std::size_t i = 0; i < want.size(); ++i) {
            ASSERT_EQ(unpacked(matrix, r, begin + static_cast<std::int64_t>(i)), want[i])
                << r << ", " << begin + static_cast<int>(i);
          }
        }
      }
    }
  }
}

TEST(PackedMatrix, Q8RoundsTiesToEvenAndClampsWhereTheScaleRoundedDown) {
  FileMatrix file = file_matrix(ElementType::kF32, 1, 32);
  for (int c = 0; c < 32; ++c) file.set(0, c, 0);
  file.set(0, 0, 127.0);  // scale 1
  file.set(0, 1, 0.5);
  file.set(0, 2, 1.5);
  file.set(0, 3, -2.5);
  file.set(0, 4, -127.0);
  const PackedMatrix ties = packed(file, WeightType::kQ8_0);
  const float want[] = {127, 0, 2, -2, -127};
  for (int c = 0; c < 5; ++c) EXPECT_EQ(unpacked(ties, 0, c), want[c]);

  // Scale 1.49 * 2^-24 is stored as 2^-24, the smallest half, so that w / scale is 189.
  const double largest = 1.49 * 127 * 0x1p-24;
  FileMatrix small = file_matrix(ElementType::kF32, 1, 2);
  small.set(0, 0, largest);
  small.set(0, 1, -largest);
  const PackedMatrix clamped = packed(small, WeightType::kQ8_0);
  EXPECT_EQ(unpacked(clamped, 0, 0), 127.0f * 0x1p-24f);
  EXPECT_EQ(unpacked(clamped, 0, 1), -127.0f * 0x1p-24f);
}

TEST(PackedMatrix, Q8OfTinyOrZeroGroupsIsZero) {
  FileMatrix file = file_matrix(ElementType::kF32, 2, 40);
  for (int c = 0; c < 40; ++c) {
    file.set(0, c, 0);
    file.set(1, c, c % 2 == 0 ? 1e-9 : -1e-40);
  }
  const PackedMatrix matrix = packed(file, WeightType::kQ8_0);
  for (int r = 0; r < 2; ++r) {
    for (int c = 0; c < 40; ++c) EXPECT_EQ(unpacked(matrix, r, c), 0.0f);
  }
}

bool is_affine(WeightType type) {
  return type == WeightType::kQ4_1 || type == WeightType::kQ5_1 || type == WeightType::kQ4K || type == WeightType::kQ5K;
}

TEST(PackedMatrix, WhatLiesPastTheMatrixIsZero) {
  for (WeightType type : kWeightTypes) {
    const PackedMatrix matrix = packed(file_matrix(ElementType::kF32, 33, 41), type);
    const std::int64_t groups = block_groups(type) == 1 ? 2 : 8;
    ASSERT_EQ(matrix.data.size(), 2u * static_cast<std::size_t>(groups) * group_bytes(type));
    for (std::int64_t r = 0; r < 64; ++r) {
      for (std::int64_t c = 0; c < groups * kGroup; ++c) {
        // In a group that begins in the matrix, affine types need not reach 0.
        if (r >= 33 || c >= 64 || (c >= 41 && !is_affine(type))) {
          ASSERT_EQ(unpacked(matrix, r, c), 0.0f) << weight_name(type) << " " << r << ", " << c;
        }
      }
    }
  }
}

TEST(PackedMatrix, TheDocumentedLayoutHolds) {
  const FileMatrix file = file_matrix(ElementType::kBF16, 64, 64);
  const std::int64_t row = 32 + 5;
  const std::int64_t col = 32 + 7;  // second tile, second group
  const PackedMatrix bf16 = packed(file, WeightType::kBF16);
  const auto* pairs = bf16.data.as<std::uint16_t>() + 3 * 1024;
  EXPECT_EQ(bf16_to_float(pairs[(3 * 32 + 5) * 2 + 1]), file.at(row, col));
  const PackedMatrix f32 = packed(file, WeightType::kF32);
  EXPECT_EQ((f32.data.as<float>() + 3 * 1024)[7 * 32 + 5], file.at(row, col));
  const PackedMatrix q8 = packed(file, WeightType::kQ8_0);
  const std::byte* block = q8.data.data() + 3 * 1088;
  const float scale = f16_to_float(reinterpret_cast<const std::uint16_t*>(block)[5]);
  const int q = static_cast<int>(block[64 + (1 * 32 + 5) * 4 + 3]) - 128;
  EXPECT_EQ(scale * static_cast<float>(q), unpacked(q8, row, col));
}

TEST(PackedMatrix, PartsStackAndThreadsMayShareTheTiles) {
  const FileMatrix a = file_matrix(ElementType::kBF16, 20, 70, 1);
  const FileMatrix b = file_matrix(ElementType::kF32, 1, 70, 5000);
  const FileMatrix c = file_matrix(ElementType::kF16, 60, 70, 9000);
  const StoredMatrix parts[] = {a.stored(), b.stored(), c.stored()};
  for (WeightType type : kWeightTypes) {
    PackedMatrix whole = packed_matrix(type, 81, 70);
    pack_tiles(parts, "qkv", 0, 3, whole);
    PackedMatrix shared = packed_matrix(type, 81, 70);
    pack_tiles(parts, "qkv", 2, 3, shared);
    pack_tiles(parts, "qkv", 0, 2, shared);
    ASSERT_EQ(std::memcmp(whole.data.data(), shared.data.data(), whole.data.size()), 0) << weight_name(type);
    if (type == WeightType::kF32) {
      EXPECT_EQ(unpacked(whole, 19, 69), a.at(19, 69));
      EXPECT_EQ(unpacked(whole, 20, 3), b.at(0, 3));
      EXPECT_EQ(unpacked(whole, 80, 1), c.at(59, 1));
    }
  }
}

std::string refusal(const FileMatrix& file, WeightType type) {
  try {
    PackedMatrix matrix = packed_matrix(type, file.rows, file.cols);
    const StoredMatrix parts[] = {file.stored()};
    pack_tiles(parts, "model.layers.3.mlp.up_proj.weight", 0, matrix.tiles(), matrix);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PackedMatrix, ANonFiniteValueIsRefusedByNameAndPlace) {
  for (ElementType stored : {ElementType::kF64, ElementType::kF32, ElementType::kF16, ElementType::kBF16}) {
    for (WeightType type : kWeightTypes) {
      for (double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
        FileMatrix file = file_matrix(stored, 40, 50);
        EXPECT_EQ(refusal(file, type), "");
        file.set(35, 49, bad);
        const std::string message = refusal(file, type);
        EXPECT_NE(message.find("model.layers.3.mlp.up_proj.weight: row 35, column 49"), std::string::npos) << message;
        EXPECT_NE(message.find("not a finite"), std::string::npos) << message;
      }
    }
  }
}

TEST(PackedMatrix, AValueTooLargeForItsTypeIsRefused) {
  FileMatrix file = file_matrix(ElementType::kF32, 4, 40);
  file.set(2, 33, -70000.0);
  EXPECT_NE(refusal(file, WeightType::kF16).find("row 2, column 33 = -70000: too large for weights of type f16"),
            std::string::npos);
  EXPECT_EQ(refusal(file, WeightType::kQ8_0), "");  // its scale fits
  EXPECT_EQ(refusal(file, WeightType::kBF16), "");
  file.set(2, 33, 1e7);
  EXPECT_NE(refusal(file, WeightType::kQ8_0).find("type q8_0"), std::string::npos);
  FileMatrix wide = file_matrix(ElementType::kF64, 1, 1);
  wide.set(0, 0, 1e300);
  EXPECT_NE(refusal(wide, WeightType::kF32), "");
}

TEST(PackedMatrix, NaturalTypesKeepTheFilesBits) {
  EXPECT_EQ(natural_weight_type(ElementType::kBF16), WeightType::kBF16);
  EXPECT_EQ(natural_weight_type(ElementType::kF16), WeightType::kF16);
  EXPECT_EQ(natural_weight_type(ElementType::kF32), WeightType::kF32);
  EXPECT_EQ(natural_weight_type(ElementType::kF64), WeightType::kF32);
}

}  // namespace
}  // namespace drafthorse
