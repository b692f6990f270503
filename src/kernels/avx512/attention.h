#pragma once

#include "kernels/kernel_table.h"

/// Attention over one chunk of keys; contracts at KernelTable, numerics in docs/numerics.md.
namespace drafthorse::avx512 {

void attention(const AttentionTask& task);
/// Needs AVX512-BF16: a bf16 cache goes through vdpbf16ps, within the bound of docs/numerics.md. An f32 cache is passed
/// on to `attention`.
void attention_bf16(const AttentionTask& task);
void attention_combine(const AttentionCombineTask& task);

}  // namespace drafthorse::avx512
