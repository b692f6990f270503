#pragma once

#include "kernels/kernel_table.h"

/// Attention over one chunk of keys; contracts at KernelTable, numerics in docs/numerics.md.
namespace drafthorse::avx2 {

void attention(const AttentionTask& task);
void attention_combine(const AttentionCombineTask& task);

}  // namespace drafthorse::avx2
