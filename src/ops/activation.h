#pragma once

#include "ops/exec_context.h"
#include "tensor/rows.h"

namespace drafthorse {

/// out = silu(gate) * up (Shazeer: "GLU variants improve transformer", 2020). gate_up [rows, 2 * cols] holds gate, then
/// up; out [rows, cols] may be the gate part itself.
void silu_multiply(ConstRows gate_up, Rows out, const ExecContext& exec);

/// x [rows, heads * head_dim]: head h of a row is multiplied by softplus(gate[row][h]). gate [rows, heads] is
/// overwritten by the factors.
void softplus_gate(Rows gate, Rows x, const ExecContext& exec);

}  // namespace drafthorse
