#include "tensor/element_type.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace drafthorse {
namespace {

struct Entry {
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<Entry, 13> kEntries = {{{"F64", 8},
                                             {"F32", 4},
                                             {"F16", 2},
                                             {"BF16", 2},
                                             {"I64", 8},
                                             {"I32", 4},
                                             {"I16", 2},
                                             {"I8", 1},
                                             {"U64", 8},
                                             {"U32", 4},
                                             {"U16", 2},
                                             {"U8", 1},
                                             {"BOOL", 1}}};

template <typename T, typename Convert>
void convert(const void* source, std::size_t count, float* out, Convert one) {
  const auto* bytes = static_cast<const std::byte*>(source);
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    out[i] = one(value);
  }
}

}  // namespace

std::size_t element_bytes(ElementType type) { return kEntries[static_cast<std::size_t>(type)].bytes; }
std::string_view element_name(ElementType type) { return kEntries[static_cast<std::size_t>(type)].name; }

std::optional<ElementType> element_type(std::string_view name) {
  for (std::size_t i = 0; i < kEntries.size(); ++i) {
    if (kEntries[i].name == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

bool is_float(ElementType type) { return type <= ElementType::kBF16; }

std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float bf16_to_float(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {  // subnormal half: adding 0.5 aligns the mantissa and rounds to nearest even
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1fu)
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13) | (mantissa != 0 ? 0x400000u : 0u));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

void to_float(ElementType type, const void* source, std::size_t count, float* out) {
  switch (type) {
    case ElementType::kF32:
      std::memcpy(out, source, count * sizeof(float));
      return;
    case ElementType::kF64:
      convert<double>(source, count, out, [](double v) { return static_cast<float>(v); });
      return;
    case ElementType::kF16:
      convert<std::uint16_t>(source, count, out, f16_to_float);
      return;
    case ElementType::kBF16:
      convert<std::uint16_t>(source, count, out, bf16_to_float);
      return;
    default:
      DRAFTHORSE_CHECK(false, "to_float of the integer type " << element_name(type));
  }
}

}  // namespace drafthorse
