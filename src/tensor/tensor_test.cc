#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "tensor/aligned_buffer.h"
#include "tensor/arena.h"
#include "tensor/element_type.h"
#include "tensor/kv_layout.h"

namespace drafthorse {
namespace {

TEST(ElementType, NamesRoundTrip) {
  for (const char* name : {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"}) {
    ASSERT_TRUE(element_type(name).has_value()) << name;
    EXPECT_EQ(element_name(*element_type(name)), name);
  }
  EXPECT_FALSE(element_type("F8_E4M3").has_value());
}

TEST(ElementType, EveryHalfSurvivesFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f16_to_float(half);
    const std::uint16_t back = float_to_f16(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_float(back)));
    } else {
      ASSERT_EQ(back, half) << bits;
      const int exponent = (half >> 10) & 31;  // the definition, computed another way
      const double expected = exponent == 31  ? std::numeric_limits<double>::infinity()
                              : exponent == 0 ? std::ldexp(half & 1023, -24)
                                              : std::ldexp(1024 + (half & 1023), exponent - 25);
      ASSERT_EQ(static_cast<double>(value), (half & 0x8000) != 0 ? -expected : expected);
    }
  }
}

TEST(ElementType, RoundsToNearestEven) {
  EXPECT_EQ(float_to_f16(1.0f + 0x1p-11f), 0x3c00);      // tie, even below
  EXPECT_EQ(float_to_f16(1.0f + 3 * 0x1p-11f), 0x3c02);  // tie, even above
  EXPECT_EQ(float_to_f16(std::nextafter(1.0f + 0x1p-11f, 2.0f)), 0x3c01);
  EXPECT_EQ(float_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_f16(0x1p-25f), 0x0000);  // tie to zero
  EXPECT_EQ(float_to_f16(std::nextafter(0x1p-25f, 1.0f)), 0x0001);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(ElementType, ReadsUnalignedElements) {
  const float values[] = {1.5f, -2.25f};
  std::byte bytes[1 + sizeof values];
  std::memcpy(bytes + 1, values, sizeof values);
  float out[2];
  to_float(ElementType::kF32, bytes + 1, 2, out);
  EXPECT_EQ(out[1], -2.25f);
  const std::uint16_t brains[] = {0x3fc0, 0xc010};
  std::memcpy(bytes + 1, brains, sizeof brains);
  to_float(ElementType::kBF16, bytes + 1, 2, out);
  EXPECT_EQ(out[0], 1.5f);
  EXPECT_EQ(out[1], -2.25f);
}

TEST(AlignedBuffer, IsAlignedAndZeroSmallAndLarge) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{3} << 20}) {
    const AlignedBuffer buffer(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
    for (std::size_t i = 0; i < bytes; i += 97) ASSERT_EQ(buffer.data()[i], std::byte{0});
  }
}

TEST(AlignedBuffer, TooMuchIsAMemoryError) {
  try {
    AlignedBuffer buffer(std::size_t{1} << 60);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kMemory);
  }
}

TEST(Arena, ASteadyStateUsesTheSameMemory) {
  Arena arena;
  arena.rows(100, 1000);
  arena.rows(300, 1000);
  arena.reset();
  const Rows first = arena.rows(100, 1000);
  arena.rows(300, 1000);
  arena.reset();
  const Rows again = arena.rows(100, 1000);
  EXPECT_EQ(first.data, again.data);
  EXPECT_EQ(again.stride, 1008);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(again.data) % 64, 0u);
}

TEST(Arena, PartsDoNotOverlap) {
  Arena arena;
  float* a = arena.array<float>(3);
  float* b = arena.array<float>(3);
  EXPECT_GE(b, a + 3);
}

TEST(KvLayout, EveryElementHasItsOwnPlace) {
  for (const ElementType type : {ElementType::kBF16, ElementType::kF32}) {
    const KvLayout layout{type, 2, 6, 64};
    std::vector<int> hits(layout.page_bytes() / element_bytes(type));
    for (std::int64_t position = 64; position < 128; ++position) {
      for (std::int64_t head = 0; head < 2; ++head) {
        const std::size_t base = layout.head_tile_offset(position, head) / element_bytes(type);
        const std::size_t value = base + layout.key_tile_bytes() / element_bytes(type);
        for (std::int64_t dim = 0; dim < 6; ++dim) {
          ++hits[base + static_cast<std::size_t>(layout.key_element(position, dim))];
          ++hits[value + static_cast<std::size_t>(layout.value_element(position, dim))];
        }
      }
    }
    for (const int count : hits) ASSERT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace drafthorse
