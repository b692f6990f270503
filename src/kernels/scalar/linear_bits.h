#pragma once

#include "kernels/kernel_table.h"

namespace drafthorse::scalar {

/// Linear layers of the weight types of 4 to 6 bits (quant/bit_format.h), plain C++. Their rows are packed by pack_rows
/// in scalar/linear.h.
void linear_bits(const LinearTask& task);

}  // namespace drafthorse::scalar
