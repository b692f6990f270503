#pragma once

#include "kernels/kernel_table.h"

/// Numbers that become choices; contracts at KernelTable, numerics in docs/numerics.md.
namespace drafthorse::avx2 {

std::int64_t argmax(const float* x, std::int64_t n);
std::uint64_t logits_hash(const float* x, std::int64_t first_id, std::int64_t n);
void softmax(const float* x, float temperature, float* out, std::int64_t n);
float log_sum_exp(const float* x, std::int64_t n);
void gumbel_scores(const float* z, const std::int32_t* ids, std::int64_t first_id, float temperature,
                   std::uint64_t seed, std::uint64_t position, float* out, std::int64_t n);

}  // namespace drafthorse::avx2
