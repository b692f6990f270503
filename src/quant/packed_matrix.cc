#include "quant/packed_matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "quant/quantize.h"
#include "quant/quantized_block.h"

namespace drafthorse {
namespace {

/// Consecutive elements of one row, one block of the packed type at most.
struct Span {
  const std::byte* bytes;
  std::int64_t count;
};

template <typename Bits>
using GroupOf = Bits[kGroup];

/// The elements of `span`, zeros after them.
template <typename Bits>
void load_group(Span span, GroupOf<Bits>& out) {
  if (span.count == kGroup) {  // a constant size, so that the copy is inlined
    std::memcpy(out, span.bytes, sizeof out);
    return;
  }
  std::memset(out, 0, sizeof out);
  std::memcpy(out, span.bytes, static_cast<std::size_t>(span.count) * sizeof(Bits));
}

void load_floats(ElementType type, Span span, GroupOf<float>& out) {
  std::fill(out + span.count, out + kGroup, 0.0f);
  to_float(type, span.bytes, static_cast<std::size_t>(span.count), out);
}

/// Whether every exponent is below the all-ones one of infinities and NaNs.
template <typename Bits>
bool all_finite(const GroupOf<Bits>& values, Bits exponent_mask) {
  unsigned bad = 0;
  for (Bits value : values) bad |= static_cast<unsigned>((value & exponent_mask) == exponent_mask);
  return bad == 0;
}

/// Each packer turns one row of one group into its place in the block and says whether all values fitted.
/// `block` is the (tile, group) block, r the row in the tile.

bool pack_f32(const GroupOf<std::uint32_t>& row, std::byte* block, std::int64_t r) {
  auto* out = reinterpret_cast<std::uint32_t*>(block) + r;
  for (std::int64_t k = 0; k < kGroup; ++k) out[k * kTileRows] = row[k];
  return all_finite<std::uint32_t>(row, 0x7f800000u);
}

bool pack_f16(const GroupOf<std::uint16_t>& row, std::byte* block, std::int64_t r) {
  auto* out = reinterpret_cast<std::uint16_t*>(block) + r;
  for (std::int64_t k = 0; k < kGroup; ++k) out[k * kTileRows] = row[k];
  return all_finite<std::uint16_t>(row, 0x7c00u);
}

bool pack_bf16(const GroupOf<std::uint16_t>& row, std::byte* block, std::int64_t r) {
  std::uint32_t pairs[kGroup / 2];
  std::memcpy(pairs, row, sizeof pairs);
  auto* out = reinterpret_cast<std::uint32_t*>(block) + r;
  for (std::int64_t p = 0; p < kGroup / 2; ++p) out[p * kTileRows] = pairs[p];
  return all_finite<std::uint16_t>(row, 0x7f80u);
}

bool pack_q8_0(const GroupOf<float>& row, std::byte* block, std::int64_t r) {
  GroupOf<std::uint32_t> bits;
  std::memcpy(bits, row, sizeof bits);
  // Magnitudes as integers: the order is that of the numbers, and an infinity or NaN is the largest.
  std::uint32_t largest = 0;
  for (std::uint32_t value : bits) largest = std::max(largest, value & 0x7fffffffu);
  if (largest >= 0x7f800000u) return false;
  const std::uint16_t half = float_to_f16(std::bit_cast<float>(largest) / 127.0f);
  if (half >= 0x7c00u) return false;
  reinterpret_cast<std::uint16_t*>(block)[r] = half;
  const float scale = f16_to_float(half);
  const float divisor = scale > 0.0f ? scale : INFINITY;  // scale 0: every quotient is 0
  constexpr float kRounder = 0x1.8p23f;  // adding it leaves round-to-even(v) + 2^22 in the low mantissa bits
  std::uint8_t quantized[kGroup];
  for (std::int64_t k = 0; k < kGroup; ++k) {
    float v = row[k] / divisor;
    v = v > 127.0f ? 127.0f : v;
    v = v < -127.0f ? -127.0f : v;
    const auto q = std::bit_cast<std::int32_t>(v + kRounder) - std::bit_cast<std::int32_t>(kRounder);
    quantized[k] = static_cast<std::uint8_t>(q + 128);
  }
  std::byte* out = block + kTileRows * 2 + r * 4;
  for (std::int64_t p = 0; p < kGroup / 4; ++p) std::memcpy(out + p * kTileRows * 4, quantized + p * 4, 4);
  return true;
}

bool pack_row(ElementType stored, WeightType type, Span span, std::byte* block, std::int64_t r) {
  if (type == WeightType::kBF16 && stored == ElementType::kBF16) {
    GroupOf<std::uint16_t> row;
    load_group<std::uint16_t>(span, row);
    return pack_bf16(row, block, r);
  }
  if (type == WeightType::kF16 && stored == ElementType::kF16) {
    GroupOf<std::uint16_t> row;
    load_group<std::uint16_t>(span, row);
    return pack_f16(row, block, r);
  }
  GroupOf<float> values;
  load_floats(stored, span, values);
  switch (type) {
    case WeightType::kF32: {
      GroupOf<std::uint32_t> row;
      std::memcpy(row, values, sizeof row);
      return pack_f32(row, block, r);
    }
    case WeightType::kF16: {
      GroupOf<std::uint16_t> row;
      for (std::int64_t k = 0; k < kGroup; ++k) row[k] = float_to_f16(values[k]);
      return pack_f16(row, block, r);
    }
    case WeightType::kBF16: {
      GroupOf<std::uint16_t> row;
      for (std::int64_t k = 0; k < kGroup; ++k) row[k] = float_to_bf16(values[k]);
      return pack_bf16(row, block, r);
    }
    case WeightType::kQ8_0:
      return pack_q8_0(values, block, r);
    default:
      return false;
  }
}

/// One row of one block of a type other than f32, f16, bf16 and q8_0.
bool pack_quantized_row(ElementType stored, WeightType type, Span span, std::byte* block, std::int64_t r) {
  float values[kMostBlockCols];
  const std::int64_t cols = file_block_cols(type);
  to_float(stored, span.bytes, static_cast<std::size_t>(span.count), values);
  std::fill(values + span.count, values + cols, 0.0f);
  QuantizedBlock quantized;
  if (!quantize(type, values, span.count, quantized)) return false;
  place_block(type, quantized, r, block);
  return true;
}

/// Finds the value to blame.
[[noreturn]] void refuse(const char* name, std::int64_t row, std::int64_t first_col, ElementType stored, Span span,
                         WeightType type) {
  float values[kMostBlockCols];
  to_float(stored, span.bytes, static_cast<std::size_t>(span.count), values);
  std::int64_t worst = 0;
  for (std::int64_t k = 0; k < span.count && std::isfinite(values[worst]); ++k) {
    if (!std::isfinite(values[k]) || std::fabs(values[k]) > std::fabs(values[worst])) worst = k;
  }
  std::ostringstream message;
  message << name << ": row " << row << ", column " << first_col + worst << " = " << values[worst];
  if (std::isfinite(values[worst])) {
    message << ": too large for weights of type " << weight_name(type) << "; choose f32 or bf16";
  } else {
    message << ": not a finite float32; the checkpoint is damaged or was saved wrongly";
  }
  throw Error(message.str());
}

/// Where the rows of one tile lie in a matrix' parts.
template <typename Part>
struct TileRows {
  struct Place {
    const Part* part;
    std::int64_t row;
  };
  std::int64_t count;  ///< rows of the matrix in the tile
  Place places[kTileRows];
};

template <typename Part>
void find_rows(std::span<const Part> parts, const char* name, std::int64_t tile, const PackedMatrix& out,
               TileRows<Part>& rows) {
  DRAFTHORSE_CHECK(0 <= tile && tile < out.tiles(), name);
  std::int64_t total = 0;
  for (const Part& part : parts) {
    DRAFTHORSE_CHECK(part.cols == out.cols, name);
    total += part.rows;
  }
  DRAFTHORSE_CHECK(total == out.rows, name << ": parts have " << total << " rows, the matrix " << out.rows);
  const std::int64_t first_row = tile * kTileRows;
  rows.count = std::min(kTileRows, out.rows - first_row);
  auto part = parts.begin();
  std::int64_t part_begin = 0;  // row of `out` where `part` starts
  for (std::int64_t r = 0; r < rows.count; ++r) {
    while (first_row + r >= part_begin + part->rows) part_begin += (part++)->rows;
    rows.places[r] = {&*part, first_row + r - part_begin};
  }
}

/// Rows of a tile past the matrix: the buffer's zeros are scales 0, but 0 is stored as 128 in q8_0.
void clear_rows_past(PackedMatrix& out, std::int64_t tile, std::int64_t first) {
  if (out.type != WeightType::kQ8_0) return;
  std::byte* block = out.data.data() + static_cast<std::size_t>(tile) * out.tile_bytes();
  for (std::int64_t g = 0; g < out.groups(); ++g, block += group_bytes(out.type)) {
    for (std::int64_t r = first; r < kTileRows; ++r) pack_q8_0({}, block, r);
  }
}

}  // namespace

WeightType natural_weight_type(ElementType type) {
  switch (type) {
    case ElementType::kF64:
    case ElementType::kF32:
      return WeightType::kF32;
    case ElementType::kF16:
      return WeightType::kF16;
    case ElementType::kBF16:
      return WeightType::kBF16;
    default:
      DRAFTHORSE_CHECK(false, "weights of the integer type " << element_name(type));
  }
  return WeightType::kF32;
}

std::uint64_t packed_bytes(WeightType type, std::int64_t rows, std::int64_t cols) {
  return static_cast<std::uint64_t>((rows + kTileRows - 1) / kTileRows) *
         static_cast<std::uint64_t>(padded_groups(type, cols)) * group_bytes(type);
}

PackedMatrix packed_matrix(WeightType type, std::int64_t rows, std::int64_t cols) {
  DRAFTHORSE_CHECK(rows >= 1 && cols >= 1, "a packed matrix of " << rows << " x " << cols);
  PackedMatrix matrix;
  matrix.type = type;
  matrix.rows = rows;
  matrix.cols = cols;
  matrix.data = AlignedBuffer(static_cast<std::size_t>(packed_bytes(type, rows, cols)));
  return matrix;
}

void pack_tiles(std::span<const StoredMatrix> parts, const char* name, std::int64_t first_tile, std::int64_t last_tile,
                PackedMatrix& out) {
  for (const StoredMatrix& part : parts) {
    DRAFTHORSE_CHECK(is_float(part.type), name);
    DRAFTHORSE_CHECK(part.bytes.size() == static_cast<std::size_t>(part.rows * part.cols) * element_bytes(part.type),
                     name);
  }
  const bool by_group = !is_quantized(out.type) || out.type == WeightType::kQ8_0;
  const std::int64_t block_cols = block_groups(out.type) * kGroup;
  const std::size_t block_bytes = group_bytes(out.type) * static_cast<std::size_t>(block_groups(out.type));
  for (std::int64_t tile = first_tile; tile < last_tile; ++tile) {
    TileRows<StoredMatrix> rows;
    find_rows(parts, name, tile, out, rows);
    std::byte* block = out.data.data() + static_cast<std::size_t>(tile) * out.tile_bytes();
    for (std::int64_t col = 0; col < out.cols; col += block_cols, block += block_bytes) {
      for (std::int64_t r = 0; r < rows.count; ++r) {
        const auto& [part, row] = rows.places[r];
        const std::byte* bytes =
            part->bytes.data() + static_cast<std::size_t>(row * part->cols + col) * element_bytes(part->type);
        const Span span{bytes, std::min(block_cols, out.cols - col)};
        const bool packed = by_group ? pack_row(part->type, out.type, span, block, r)
                                     : pack_quantized_row(part->type, out.type, span, block, r);
        if (!packed) refuse(name, tile * kTileRows + r, col, part->type, span, out.type);
      }
    }
    clear_rows_past(out, tile, rows.count);
  }
}

void pack_blocks(std::span<const StoredBlocks> parts, const char* name, std::int64_t first_tile, std::int64_t last_tile,
                 PackedMatrix& out) {
  const std::int64_t block_cols = file_block_cols(out.type);
  const std::int64_t row_blocks = out.cols / block_cols;
  const std::size_t stored_bytes = file_block_bytes(out.type);
  const std::size_t block_bytes = group_bytes(out.type) * static_cast<std::size_t>(block_groups(out.type));
  DRAFTHORSE_CHECK(out.cols % block_cols == 0, name << ": " << out.cols << " columns are not whole blocks");
  for (const StoredBlocks& part : parts) {
    DRAFTHORSE_CHECK(part.type == out.type, name);
    DRAFTHORSE_CHECK(part.bytes.size() == static_cast<std::size_t>(part.rows * row_blocks) * stored_bytes, name);
  }
  for (std::int64_t tile = first_tile; tile < last_tile; ++tile) {
    TileRows<StoredBlocks> rows;
    find_rows(parts, name, tile, out, rows);
    std::byte* tile_block = out.data.data() + static_cast<std::size_t>(tile) * out.tile_bytes();
    for (std::int64_t b = 0; b < row_blocks; ++b, tile_block += block_bytes) {
      for (std::int64_t r = 0; r < rows.count; ++r) {
        const auto& [part, row] = rows.places[r];
        const QuantizedBlock block =
            read_block(out.type, part->bytes.data() + static_cast<std::size_t>(row * row_blocks + b) * stored_bytes);
        if (!is_finite(block)) {
          std::ostringstream message;
          message << name << ": row " << tile * kTileRows + r << ", columns " << b * block_cols << " to "
                  << (b + 1) * block_cols - 1 << ": a scale that is not a finite number; the file is damaged";
          throw Error(message.str());
        }
        place_block(out.type, block, r, tile_block);
      }
    }
    clear_rows_past(out, tile, rows.count);
  }
}

float unpacked(const PackedMatrix& matrix, std::int64_t row, std::int64_t col) {
  DRAFTHORSE_CHECK(0 <= row && row < matrix.tiles() * kTileRows && 0 <= col && col < matrix.groups() * kGroup);
  const std::int64_t block_cols = block_groups(matrix.type) * kGroup;
  const std::byte* block =
      matrix.stream() + static_cast<std::size_t>(row / kTileRows) * matrix.tile_bytes() +
      static_cast<std::size_t>(col / block_cols * block_groups(matrix.type)) * group_bytes(matrix.type);
  const std::int64_t r = row % kTileRows;
  const std::int64_t k = col % block_cols;
  const auto* halves = reinterpret_cast<const std::uint16_t*>(block);
  switch (matrix.type) {
    case WeightType::kF32:
      return reinterpret_cast<const float*>(block)[k * kTileRows + r];
    case WeightType::kF16:
      return f16_to_float(halves[k * kTileRows + r]);
    case WeightType::kBF16:
      return bf16_to_float(halves[((k / 2) * kTileRows + r) * 2 + k % 2]);
    default:
      return value_in_tile(matrix.type, block, r, k);
  }
}

void unpack_row(const PackedMatrix& matrix, std::int64_t row, float* values) {
  for (std::int64_t col = 0; col < matrix.cols; ++col) values[col] = unpacked(matrix, row, col);
}

}  // namespace drafthorse
