#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"

/// Linear layers for AVX-512 (F, BW, VL, DQ, VNNI). Same bits as scalar/linear.h, except bf16 in linear_bf16.
namespace drafthorse::avx512 {

std::size_t packed_rows_bytes(WeightType type, std::int64_t rows, std::int64_t cols);
void pack_rows(WeightType type, const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols,
               std::int64_t group_begin, std::int64_t group_end, std::byte* out);
void linear(const LinearTask& task);

/// Need AVX512-BF16. The other weight types are passed on to pack_rows and linear; bf16 goes through vdpbf16ps, within
/// 2e-6 * sum |w x| of scalar. packed_rows_bytes is shared.
void pack_rows_bf16(WeightType type, const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols,
                    std::int64_t group_begin, std::int64_t group_end, std::byte* out);
void linear_bf16(const LinearTask& task);

}  // namespace drafthorse::avx512
