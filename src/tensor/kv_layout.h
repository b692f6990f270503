#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/element_type.h"

namespace drafthorse {

/// Positions of one attention tile. Tiles lie on absolute positions: tile t holds positions [32 t, 32 t + 32).
inline constexpr std::int64_t kKvTile = 32;

/// The layout of keys and values in a page, owned here and nowhere else.
///
/// A page holds `page_positions` consecutive positions (a multiple of kKvTile) of one layer: for each tile, for each kv
/// head, a key tile followed by a value tile. Inside a tile one vector lane is one position (keys) or one dimension
/// (values), so no kernel needs a horizontal operation:
///   bf16: key   element (p, d) at ((d / 2) * 32 + p) * 2 + d % 2         value (p, d) at ((p / 2) * D + d) * 2 + p % 2
///   f32:  key   element (p, d) at d * 32 + p                            value (p, d) at p * D + d
/// in elements, p = position mod 32, D = head_dim (even).
struct KvLayout {
  ElementType type = ElementType::kBF16;  ///< kBF16 or kF32
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;         ///< even
  std::int64_t page_positions = 64;  ///< a multiple of kKvTile

  std::size_t key_tile_bytes() const { return static_cast<std::size_t>(kKvTile * head_dim) * element_bytes(type); }
  /// One head's key tile and value tile.
  std::size_t head_tile_bytes() const { return 2 * key_tile_bytes(); }
  std::size_t tile_bytes() const { return head_tile_bytes() * static_cast<std::size_t>(kv_heads); }
  std::size_t page_bytes() const { return tile_bytes() * static_cast<std::size_t>(page_positions / kKvTile); }
  /// Offset in its page of the (key tile, value tile) pair of `head` that holds absolute `position`.
  std::size_t head_tile_offset(std::int64_t position, std::int64_t head) const {
    return static_cast<std::size_t>((position % page_positions) / kKvTile) * tile_bytes() +
           static_cast<std::size_t>(head) * head_tile_bytes();
  }
  /// Element index in the key (value) tile.
  std::int64_t key_element(std::int64_t position, std::int64_t dim) const {
    const std::int64_t p = position % kKvTile;
    return type == ElementType::kBF16 ? ((dim / 2) * kKvTile + p) * 2 + dim % 2 : dim * kKvTile + p;
  }
  std::int64_t value_element(std::int64_t position, std::int64_t dim) const {
    const std::int64_t p = position % kKvTile;
    return type == ElementType::kBF16 ? ((p / 2) * head_dim + dim) * 2 + p % 2 : p * head_dim + dim;
  }
};

/// A layer's keys and values as attention reads them: page i holds positions [i * page_positions, (i + 1) *
/// page_positions). Borrowed; the last pages may be a forward's own scratch.
struct KvPages {
  const std::byte* const* pages = nullptr;
  std::int64_t page_positions = 0;
};

}  // namespace drafthorse
