#pragma once

#include "kernels/kernel_table.h"

namespace drafthorse::avx512 {

/// "avx512-base": AVX-512 F, BW, VL, DQ and VNNI.
extern const KernelTable kBaseTable;
/// "avx512" on a CPU without AVX512-BF16: the functions of kBaseTable.
extern const KernelTable kTable;
/// "avx512" on a CPU with AVX512-BF16.
extern const KernelTable kBf16Table;

}  // namespace drafthorse::avx512
