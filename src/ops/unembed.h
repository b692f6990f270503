#pragma once

#include <cstdint>

#include "ops/exec_context.h"
#include "ops/linear.h"
#include "quant/packed_matrix.h"
#include "tensor/arena.h"
#include "tensor/rows.h"

namespace drafthorse {

/// What becomes of the logits, and what is wanted of them. Without `logits` no [rows, vocab] buffer exists.
struct UnembedTask {
  float multiplier = 1.0f;         ///< of every logit, first
  float cap = 0.0f;                ///< then cap * tanh(x / cap); 0: off
  Rows logits;                     ///< data != null: all of them, [rows, head.rows]
  std::int32_t* argmax = nullptr;  ///< [rows] id of the largest logit, the lowest id on ties; NaN never beats a number
  std::uint64_t* hash = nullptr;   ///< [rows] KernelTable::logits_hash of the row
};

/// Logits of hidden rows: x W^T, computed, finished and reduced range by range. `scratch` lends memory until it is
/// reset.
void unembed(const PackedMatrix& head, const PackedRows& hidden, const UnembedTask& task, Arena& scratch,
             const ExecContext& exec);

}  // namespace drafthorse
