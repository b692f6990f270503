#pragma once

#include <cstdint>
#include <span>

#include "quant/weight_type.h"
#include "tensor/aligned_buffer.h"
#include "tensor/element_type.h"

namespace drafthorse {

/// A linear layer's weight [rows, cols] (rows = outputs N, cols = inputs K) in kernel order, with an optional bias.
///
/// The stream is [tile of 32 rows][group of 32 columns]{scales, data}, fully contiguous. Any N and K >= 1 work. Inside
/// a block, r = row mod 32, k = column mod 32:
///   f32   1024 floats,         element at k * 32 + r
///   f16   1024 halves,         element at k * 32 + r
///   bf16  1024 bf16,           element at ((k / 2) * 32 + r) * 2 + k % 2
///   q8_0  32 f16 scales (64 B), then 1024 bytes, value + 128 at ((k / 4) * 32 + r) * 4 + k % 4
///   others in quant/bit_format.h. The blocks of q4_k, q5_k and q6_k span 8 groups; columns are padded to whole blocks.
/// Rows and whole blocks past the matrix are zeros. In a block that is partly past it the columns beyond may hold other
/// values (d * q + m need not reach 0): the activations there are zeros.
struct PackedMatrix {
  WeightType type = WeightType::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  AlignedBuffer data;                   ///< the stream; empty when it is borrowed
  std::span<const std::byte> borrowed;  ///< the stream where it belongs to a mapped file, which outlives the matrix
  AlignedBuffer bias;                   ///< f32, padded with zeros to whole tiles; empty = none

  std::int64_t tiles() const { return (rows + kTileRows - 1) / kTileRows; }
  std::int64_t groups() const { return padded_groups(type, cols); }
  std::size_t tile_bytes() const { return static_cast<std::size_t>(groups()) * group_bytes(type); }
  const std::byte* stream() const { return borrowed.empty() ? data.data() : borrowed.data(); }
};

/// Bytes of the stream of a [rows, cols] matrix, for sizes up to 2^40 elements.
std::uint64_t packed_bytes(WeightType type, std::int64_t rows, std::int64_t cols);

/// A row-major matrix in a file: `bytes` holds rows x cols elements of a float type, any alignment.
struct StoredMatrix {
  ElementType type = ElementType::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::span<const std::byte> bytes;
};

/// A row-major matrix in a file in blocks of a quantised type: rows x cols / file_block_cols(type) blocks, any
/// alignment.
struct StoredBlocks {
  WeightType type = WeightType::kQ8_0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;  ///< whole blocks
  std::span<const std::byte> bytes;
};

/// The kernel type that keeps a file's type as it is (f32, f16, bf16; f64 becomes f32).
WeightType natural_weight_type(ElementType type);

/// Packs the rows of `parts`, stacked in order (all with equal cols), as `type`. Conversions round to nearest even;
/// quantised types are fitted as docs/numerics.md says. Throws Error naming `name` when a value is not finite or does
/// not fit the type (f16 overflow). [first_tile, last_tile) bounds the work, so that threads may share it: `out` must
/// have been made by `packed_matrix`.
PackedMatrix packed_matrix(WeightType type, std::int64_t rows, std::int64_t cols);
void pack_tiles(std::span<const StoredMatrix> parts, const char* name, std::int64_t first_tile, std::int64_t last_tile,
                PackedMatrix& out);
/// The same from parts that are already of out.type: keeps every value exactly. Throws Error naming `name` when a scale
/// is not finite.
void pack_blocks(std::span<const StoredBlocks> parts, const char* name, std::int64_t first_tile, std::int64_t last_tile,
                 PackedMatrix& out);

/// The values of one row as the kernels see them; `values` has `cols` entries.
void unpack_row(const PackedMatrix& matrix, std::int64_t row, float* values);
/// The oracle: the value the kernels see at (row, col).
float unpacked(const PackedMatrix& matrix, std::int64_t row, std::int64_t col);

}  // namespace drafthorse
