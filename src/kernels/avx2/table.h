#pragma once

#include "kernels/kernel_table.h"

namespace drafthorse::avx2 {

/// "avx2-base": AVX2, FMA and F16C.
extern const KernelTable kBaseTable;
/// "avx2" on a CPU without AVX-VNNI: the functions of kBaseTable.
extern const KernelTable kTable;
/// "avx2" on a CPU with AVX-VNNI.
extern const KernelTable kVnniTable;

}  // namespace drafthorse::avx2
