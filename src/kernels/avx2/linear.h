#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"

/// Linear layers for AVX2, FMA and F16C. Same bits as scalar/linear.h for every weight type.
namespace drafthorse::avx2 {

std::size_t packed_rows_bytes(WeightType type, std::int64_t rows, std::int64_t cols);
void pack_rows(WeightType type, const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols,
               std::int64_t group_begin, std::int64_t group_end, std::byte* out);
void linear(const LinearTask& task);

/// Need AVX-VNNI. Float weight types are passed on to pack_rows and linear; q8_0 has its own packed rows, the types of
/// 4 to 6 bits share theirs with linear. All give the same bits. packed_rows_bytes is shared.
void pack_rows_vnni(WeightType type, const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols,
                    std::int64_t group_begin, std::int64_t group_end, std::byte* out);
void linear_vnni(const LinearTask& task);

}  // namespace drafthorse::avx2
