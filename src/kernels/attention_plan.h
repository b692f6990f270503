#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"

namespace drafthorse {

/// (query, head) rows that walk a chunk together: the memory is read once for all of them.
inline constexpr int kAttentionRows = 16;

/// Which keys some rows of a task look at, and where those lie. Positions are relative to the chunk, in [0,
/// kAttentionChunk]. How rows are cut into plans and blocks never shows in the results.
struct AttentionPlan {
  /// Rows [first, first + rows) of the plan, whose arithmetic shares the loads of a tile.
  struct Block {
    int first;
    int rows;
    std::int64_t
        common_begin;  ///< all of them see [common_begin, common_end); both even, so that value pairs stay whole
    std::int64_t common_end;
  };

  int rows;                            ///< 1 to kAttentionRows
  std::int64_t begin[kAttentionRows];  ///< row i sees [begin, end); both 0: nothing
  std::int64_t end[kAttentionRows];
  std::int64_t first_tile;  ///< tiles [first_tile, last_tile) hold a key that some row sees
  std::int64_t last_tile;
  int block_count;
  Block blocks[kAttentionRows];
  /// By tile of the chunk, from first_tile. The four after last_tile - 1 are the first value tiles: what is read when
  /// the keys are done.
  const std::byte* key_tiles[kAttentionChunk / 32 + 4];
};

/// Rows [first_row, ..) of `task`, in blocks of at most `block_rows`, sizes differing by at most one.
AttentionPlan attention_plan(const AttentionTask& task, std::int64_t first_row, int block_rows);

}  // namespace drafthorse
