#pragma once

#include <cstdint>

#include "quant/quantized_block.h"

namespace drafthorse {

/// Fits a block of a quantised type to the first `count` (at least 1, at most file_block_cols(type)) of `values`. The
/// others must be zeros; they have no say, and take the integer that comes nearest to 0. How each type is fitted is in
/// docs/numerics.md. The same bits on every machine. False when a value is not finite or a scale does not fit in f16.
bool quantize(WeightType type, const float* values, std::int64_t count, QuantizedBlock& block);

}  // namespace drafthorse
