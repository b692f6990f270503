#pragma once

#include "kernels/kernel_table.h"

namespace drafthorse::scalar {

/// "scalar": plain C++, runs anywhere; the numeric contract in code.
extern const KernelTable kTable;

}  // namespace drafthorse::scalar
