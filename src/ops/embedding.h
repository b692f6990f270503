#pragma once

#include <cstdint>
#include <span>

#include "ops/exec_context.h"
#include "quant/packed_matrix.h"
#include "tensor/rows.h"

namespace drafthorse {

/// out row i = row ids[i] of `table`, as float32. An id outside [0, table.rows) fails a CHECK.
void embed(const StoredMatrix& table, std::span<const std::int32_t> ids, Rows out, const ExecContext& exec);

}  // namespace drafthorse
