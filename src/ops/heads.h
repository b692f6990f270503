#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/exec_context.h"
#include "ops/rope_table.h"
#include "tensor/kv_layout.h"
#include "tensor/rows.h"

namespace drafthorse {

/// What every head of a layer goes through between projection and attention.
struct HeadSteps {
  KvLayout layout;                ///< of the pages written; kv_heads and head_dim of the rows
  std::int64_t heads = 0;         ///< query heads, a multiple of layout.kv_heads
  const float* q_norm = nullptr;  ///< [head_dim] RMS norm of each query head, before the rotation; null: none
  const float* k_norm = nullptr;  ///< the same for key heads
  float norm_eps = 0.0f;
  const RopeTable* rope = nullptr;
};

/// Consecutive rows of one sequence: `rows` rows from first_row on, at positions [position, position + rows).
struct HeadRun {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t position = 0;
  std::byte* const* pages =
      nullptr;  ///< where keys and values go, one page per layout.page_positions positions from 0 on
};

/// Norms and rotates query and key heads in place and writes keys and values (values as they are) to the pages. q
/// [rows, heads * head_dim], or no data when only keys and values matter; k and v [rows, kv_heads * head_dim]; rows as
/// the runs count them.
void finish_heads(const HeadSteps& steps, std::span<const HeadRun> runs, Rows q, Rows k, ConstRows v,
                  const ExecContext& exec);

}  // namespace drafthorse
