#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"

/// Linear layers of the weight types of 4 to 6 bits (quant/bit_format.h) for AVX-512 (F, BW, VL, DQ, VNNI). Same bits
/// as scalar/linear_bits.h.
namespace drafthorse::avx512 {

/// Packed bytes of one row and group.
std::size_t bits_record_bytes(WeightType type);
void pack_rows_bits(WeightType type, const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols,
                    std::int64_t group_begin, std::int64_t group_end, std::byte* out);
void linear_bits(const LinearTask& task);

}  // namespace drafthorse::avx512
