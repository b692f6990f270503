#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/kernel_table.h"

/// What the SIMD linear kernels share: how rows are cut into blocks and how tiles are walked. Each file that includes
/// this is compiled for another instruction set, so everything here has internal linkage and nothing of the standard
/// library is called: the linker must never keep one file's copy of an inline function for another.
namespace drafthorse {
namespace {

/// The value x86 makes of an invalid operation. pack_rows turns every NaN into it, so that no NaN's bits depend on
/// operand order.
constexpr std::uint32_t kNanBits = 0xffc00000u;
constexpr std::uint32_t kInfinityBits = 0x7f800000u;
/// Groups of activations below this count as zeros in q8_0: 127 / amax would overflow.
constexpr float kSmallestAmax = 0x1p-120f;

constexpr std::int64_t smaller_of(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

/// Rows cut into as few blocks of at most `most` rows as possible, sizes differing by at most one, larger ones first.
/// Packed rows are [block][group][row of the block]{record}.
struct RowBlocks {
  std::int64_t count;
  std::int64_t smaller;       ///< rows of the later blocks
  std::int64_t larger_count;  ///< first blocks that have one row more

  RowBlocks(std::int64_t rows, std::int64_t most)
      : count((rows + most - 1) / most), smaller(rows / count), larger_count(rows % count) {}
  std::int64_t rows(std::int64_t block) const { return smaller + (block < larger_count ? 1 : 0); }
  std::int64_t first_row(std::int64_t block) const { return block * smaller + smaller_of(block, larger_count); }
};

/// Calls pack(source, count, record) for every row and every group in [group_begin, group_end): `count` values at
/// `source` (32 but in a last, short group, and 0 in padding past it) belong in the record at `record`.
template <std::int64_t kMostRows, std::size_t kRecordBytes, std::int64_t kBlockGroups = 1, typename Pack>
void pack_records(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols, std::int64_t group_begin,
                  std::int64_t group_end, std::byte* out, Pack pack) {
  const RowBlocks blocks(rows, kMostRows);
  constexpr std::int64_t kBlockCols = kBlockGroups * kGroup;
  const std::int64_t groups = (cols + kBlockCols - 1) / kBlockCols * kBlockGroups;
  for (std::int64_t b = 0; b < blocks.count; ++b) {
    const std::int64_t first = blocks.first_row(b);
    const std::int64_t count = blocks.rows(b);
    for (std::int64_t g = group_begin; g < group_end; ++g) {
      std::byte* record = out + static_cast<std::size_t>(first * groups + g * count) * kRecordBytes;
      for (std::int64_t r = 0; r < count; ++r, record += kRecordBytes) {
        const std::int64_t column = smaller_of(g * kGroup, cols);
        pack(x + (first + r) * x_stride + column, smaller_of(kGroup, cols - column), record);
      }
    }
  }
}

/// Groups a kernel works through before the walk goes on to the next block of rows or the next tile: long enough that
/// loading and storing the sums costs little, short enough that fetching from memory stays spread over the work on all
/// blocks.
constexpr std::int64_t kChunk = 2;
/// How far ahead of the last block of rows weights are fetched. With one or two rows nothing is: the hardware's own
/// prefetcher keeps up, and more requests cost 3-12 %. Measured on 2 cores of AMD Zen 4, as kChunk.
constexpr std::int64_t kFetchAhead = 4096;
constexpr std::int64_t kFetchRows = 3;
/// Sums kept by one walk: rows times tiles in lock-step.
constexpr std::int64_t kMostSums = 64;

using Add = void (*)(const std::byte*, const std::byte*, std::int64_t, float*);

/// A kernel's functions by rows - 1.
template <typename Kernel, typename Sequence>
struct AddersOf;
template <typename Kernel, int... kRows>
struct AddersOf<Kernel, std::integer_sequence<int, kRows...>> {
  static constexpr Add kFetching[] = {&Kernel::template add<kRows + 1, true>...};
  static constexpr Add kPlain[] = {&Kernel::template add<kRows + 1, false>...};
};

/// The loops around a kernel. `Kernel` has
///   kMostRows    rows of a block at most
///   kRecordBytes packed bytes of one row and group
///   kBlockGroups groups of one block of packed weights
///   kBlockBytes  bytes of one block
///   template <int kRows, bool kFetch> static void add(const std::byte* w, const std::byte* x, std::int64_t groups,
///   float* sums): adds the products of `groups` groups of one tile to sums[row * 32 + output], rows 0 .. kRows - 1;
///   calls fetch_ahead for all of w if kFetch.
/// No output depends on how rows are grouped in blocks or tiles in walks: its operations and their order are the same
/// in all of them.
template <typename Kernel>
class Walk {
 public:
  explicit Walk(const LinearTask& task) : task_(task), blocks_(task.rows, Kernel::kMostRows) {}

  void run() const {
    const std::int64_t together = kMostSums / smaller_of(task_.rows, kMostSums);
    for (std::int64_t t = 0; t < task_.tile_count; t += together) {
      const std::int64_t count = smaller_of(together, task_.tile_count - t);
      constexpr std::int64_t kBlocks = kMostSums / Kernel::kMostRows;
      for (std::int64_t b = 0; b < blocks_.count; b += kBlocks) {
        walk(task_.tiles + t, count, b, smaller_of(blocks_.count, b + kBlocks));
      }
    }
  }

 private:
  using Adders = AddersOf<Kernel, std::make_integer_sequence<int, Kernel::kMostRows>>;
  /// Whole blocks.
  static constexpr std::int64_t kStep = kChunk > Kernel::kBlockGroups ? kChunk : Kernel::kBlockGroups;
  static_assert(kStep % Kernel::kBlockGroups == 0);

  /// `count` tiles in lock-step, rows of blocks [first_block, last_block).
  void walk(const std::int64_t* tiles, std::int64_t count, std::int64_t first_block, std::int64_t last_block) const {
    alignas(64) float sums[kMostSums * kTileRows];
    const std::int64_t first_row = blocks_.first_row(first_block);
    const std::int64_t rows = blocks_.first_row(last_block) - first_row;
    for (std::int64_t i = 0; i < count * rows * kTileRows; ++i) sums[i] = 0.0f;
    for (std::int64_t g = 0; g < task_.groups; g += kStep) {
      const std::int64_t groups = smaller_of(kStep, task_.groups - g);
      for (std::int64_t t = 0; t < count; ++t) {
        const std::byte* w = task_.weights + static_cast<std::size_t>(tiles[t]) * task_.tile_bytes +
                             static_cast<std::size_t>(g / Kernel::kBlockGroups) * Kernel::kBlockBytes;
        float* tile_sums = sums + t * rows * kTileRows;
        for (std::int64_t b = first_block; b < last_block; ++b) {
          const std::int64_t block_row = blocks_.first_row(b);
          const std::int64_t block_rows = blocks_.rows(b);
          const std::byte* x =
              task_.x + static_cast<std::size_t>(block_row * task_.groups + g * block_rows) * Kernel::kRecordBytes;
          const bool fetch = b == last_block - 1 && task_.rows >= kFetchRows;
          const Add add = fetch ? Adders::kFetching[block_rows - 1] : Adders::kPlain[block_rows - 1];
          add(w, x, groups, tile_sums + (block_row - first_row) * kTileRows);
        }
      }
    }
    for (std::int64_t t = 0; t < count; ++t) store(sums + t * rows * kTileRows, tiles[t] * kTileRows, first_row, rows);
  }

  void store(const float* sums, std::int64_t first_output, std::int64_t first_row, std::int64_t rows) const {
    const std::int64_t outputs = smaller_of(kTileRows, task_.outputs - first_output);
    for (std::int64_t r = 0; r < rows; ++r, sums += kTileRows) {
      float* y = task_.y + (first_row + r) * task_.y_stride + first_output;
      if (task_.bias != nullptr) {
        const float* bias = task_.bias + first_output;
        for (std::int64_t n = 0; n < outputs; ++n) y[n] = sums[n] + bias[n];
      } else {
        for (std::int64_t n = 0; n < outputs; ++n) y[n] = sums[n];
      }
    }
  }

  const LinearTask& task_;
  RowBlocks blocks_;
};

/// Fetches the cache line kFetchAhead bytes from p. Assembly, because compilers gather intrinsic prefetches in bursts,
/// which streams 20-35 % slower.
[[gnu::always_inline]] inline void fetch_ahead(const std::byte* p) {
  asm volatile("prefetcht0 %c1(%0)" : : "r"(p), "i"(kFetchAhead));
}

/// Keeps the loads of one step from being hoisted over those of the next, which would need more registers than there
/// are.
[[gnu::always_inline]] inline void step_done() { asm volatile("" : : : "memory"); }

}  // namespace
}  // namespace drafthorse
