#pragma once

#include "kernels/kernel_table.h"

namespace drafthorse {

/// The best table of this CPU with one fault: every linear result is larger by a hair for each row beyond the first
/// that its call computes. Greedy decoding and `verify` must notice; a program that does not compare bits would not.
const KernelTable& row_dependent_table();

}  // namespace drafthorse
