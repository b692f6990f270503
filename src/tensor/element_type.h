#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace drafthorse {

/// Element types of tensors as files hold them (safetensors names in comments).
enum class ElementType : std::uint8_t {
  kF64,   // F64
  kF32,   // F32
  kF16,   // F16
  kBF16,  // BF16
  kI64,   // I64
  kI32,   // I32
  kI16,   // I16
  kI8,    // I8
  kU64,   // U64
  kU32,   // U32
  kU16,   // U16
  kU8,    // U8
  kBool,  // BOOL
};

/// Bytes of one element.
std::size_t element_bytes(ElementType type);
/// The safetensors spelling ("BF16").
std::string_view element_name(ElementType type);
/// Nothing for an unknown spelling.
std::optional<ElementType> element_type(std::string_view name);
/// F64, F32, F16, BF16.
bool is_float(ElementType type);

/// IEEE 754 conversions, round to nearest even, NaN stays NaN (quiet). The same bits on every machine.
std::uint16_t float_to_bf16(float value);
float bf16_to_float(std::uint16_t bits);
std::uint16_t float_to_f16(float value);
float f16_to_float(std::uint16_t bits);

/// `count` elements at `source` (any alignment, little endian) of a float type, as float32. F64 is rounded to nearest.
void to_float(ElementType type, const void* source, std::size_t count, float* out);

}  // namespace drafthorse
