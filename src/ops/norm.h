#pragma once

#include "ops/exec_context.h"
#include "tensor/rows.h"

namespace drafthorse {

/// out = x / sqrt(mean(x^2) + eps) * weight, row by row (Zhang, Sennrich: "Root mean square layer normalization",
/// 2019). weight [cols]. In place allowed.
void rms_norm(ConstRows x, const float* weight, float eps, Rows out, const ExecContext& exec);

/// x += a, then out = rms_norm(x): what stands between two sublayers of a residual network.
void add_rms_norm(ConstRows a, Rows x, const float* weight, float eps, Rows out, const ExecContext& exec);

}  // namespace drafthorse
