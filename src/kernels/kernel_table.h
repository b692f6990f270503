#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "quant/weight_type.h"
#include "tensor/element_type.h"

namespace drafthorse {

/// Keys per attention chunk. Chunks lie on absolute positions; each yields a partial result, combined in ascending
/// order.
inline constexpr std::int64_t kAttentionChunk = 512;
/// The largest head_dim the attention kernels take.
inline constexpr std::int64_t kMaxHeadDim = 512;

/// One call of the linear kernel: y = x W^T (+ bias) for all rows of x and the outputs of up to four tiles.
struct LinearTask {
  WeightType type;
  const std::byte* weights;   ///< a PackedMatrix' stream
  std::size_t tile_bytes;     ///< distance from tile to tile
  std::int64_t groups;        ///< groups of kGroup columns
  const std::int64_t* tiles;  ///< the tiles to walk, in lock-step so that the memory sees several streams
  int tile_count;             ///< 1 to 4
  const std::byte* x;         ///< made by this table's pack_rows for the same type, rows and columns
  std::int64_t rows;          ///< >= 1
  const float* bias;          ///< per output, padded to whole tiles; null = none
  std::int64_t outputs;       ///< real outputs of the matrix; later lanes of the last tile are not stored
  float* y;                   ///< output n of row r goes to y[r * y_stride + n]
  std::int64_t y_stride;
};

/// One kv head, one chunk of keys, `queries` query positions x `group` query heads that share the kv head.
/// Row index m * group + g; q row at q + m * q_stride + g * head_dim.
/// Whole tiles are read over the smallest interval that holds every visible range of the task, so its pages must be
/// there; what their invisible positions hold (stale rows, NaN) does not show.
struct AttentionTask {
  ElementType kv_type;            ///< kBF16 or kF32
  std::int64_t head_dim;          ///< even, at most kMaxHeadDim
  const std::byte* const* pages;  ///< pages[i] = positions [i * page_positions, ..)
  std::int64_t page_positions;
  std::size_t tile_stride;   ///< bytes from tile to tile inside a page
  std::size_t head_offset;   ///< bytes from a tile's start to this head's key tile; its value tile follows
  std::size_t value_offset;  ///< bytes from the key tile to the value tile
  std::int64_t chunk_begin;  ///< positions [chunk_begin, chunk_end), chunk_begin a multiple of kAttentionChunk
  std::int64_t chunk_end;
  const float* q;
  std::int64_t q_stride;
  std::int64_t queries;  ///< >= 1
  std::int64_t group;    ///< >= 1
  const std::int64_t*
      visible_begin;  ///< per query: keys [visible_begin, visible_end) may be seen; outside is never read into a result
  const std::int64_t* visible_end;
  float scale;    ///< multiplies q before it is rounded to the cache type
  float softcap;  ///< 0 = off; else score = cap * tanh(score / cap)
  float* out;     ///< [queries * group, head_dim] un-normalised sums, row stride head_dim; zeros where the chunk shows
                  ///< nothing
  float* max;     ///< [queries * group] largest score; -infinity where the chunk shows nothing
  float* sum;     ///< [queries * group] sum of exp(score - max)
};

/// Combines `chunks` partial results of one row in ascending order and normalises.
/// Chunk c: values at partial + c * partial_stride, max[c * stat_stride], sum[c * stat_stride]. Chunks with sum 0 are
/// skipped; zeros where nothing was visible.
struct AttentionCombineTask {
  std::int64_t head_dim;
  std::int64_t chunks;
  const float* partial;
  std::int64_t partial_stride;
  const float* max;
  const float* sum;
  std::int64_t stat_stride;
  float* out;  ///< [head_dim]
};

/// The whole SIMD boundary: single-threaded loops over raw pointers. Every entry exists in scalar/, which is the
/// numeric contract of docs/numerics.md in code; the other tables give the same bits except where that document names a
/// bound. No entry allocates, throws or keeps state. All work under MXCSR 0x1f80 (nearest even, denormals kept).
/// Pointers to packed weights, packed rows and key/value tiles are 64-byte aligned; plain float rows need no alignment.
/// `n` is any count >= 1 unless said.
struct KernelTable {
  const char* name;  ///< "scalar", "avx2", "avx512", ..

  // --- linear -------------------------------------------------------------------------------------------------------
  /// Bytes `pack_rows` needs for `rows` rows of `cols` columns. A multiple of 64.
  std::size_t (*packed_rows_bytes)(WeightType type, std::int64_t rows, std::int64_t cols);
  /// Rounds or quantises activation rows into the order the linear kernel of `type` reads. Packs groups [group_begin,
  /// group_end) of all rows, so that threads may share the work. Row r at x + r * x_stride; columns past `cols` count
  /// as 0.
  void (*pack_rows)(WeightType type, const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols,
                    std::int64_t group_begin, std::int64_t group_end, std::byte* out);
  void (*linear)(const LinearTask& task);

  // --- attention ----------------------------------------------------------------------------------------------------
  /// Rounds one key row and one value row [head_dim] to the cache type and writes them as position p (0..31) of a key
  /// tile and value tile.
  void (*kv_write)(ElementType kv_type, std::int64_t head_dim, std::int64_t p, const float* key, const float* value,
                   std::byte* key_tile, std::byte* value_tile);
  void (*attention)(const AttentionTask& task);
  void (*attention_combine)(const AttentionCombineTask& task);

  // --- rows between the matrices ------------------------------------------------------------------------------------
  /// out = x / sqrt(mean(x^2) + eps) * weight. In place allowed.
  void (*rms_norm)(const float* x, const float* weight, float eps, std::int64_t n, float* out);
  /// Rotates the first 2 * half values of x: pairs (i, i + half), or (2i, 2i + 1) when interleaved; cos and sin are
  /// [half].
  void (*rope)(float* x, const float* cos, const float* sin, std::int64_t half, bool interleaved);
  /// x += a.
  void (*add)(const float* a, float* x, std::int64_t n);
  /// x *= s.
  void (*scale)(float s, float* x, std::int64_t n);
  /// out = silu(gate) * up; out may be gate or up.
  void (*silu_multiply)(const float* gate, const float* up, float* out, std::int64_t n);
  /// x = log(1 + exp(x)).
  void (*softplus)(float* x, std::int64_t n);
  /// x = cap * tanh(x / cap).
  void (*softcap)(float cap, float* x, std::int64_t n);
  /// n stored elements (kF32, kF16, kBF16; any alignment) as float32.
  void (*to_float)(ElementType type, const std::byte* source, float* out, std::int64_t n);

  // --- numbers that become choices ----------------------------------------------------------------------------------
  /// Index of the largest value, the lowest index on ties; NaN never wins over a number (all NaN: 0).
  std::int64_t (*argmax)(const float* x, std::int64_t n);
  /// Wrapping sum over i of mix(bits(x[i]), first_id + i); mix as in docs/numerics.md. Sums of disjoint ranges add up.
  std::uint64_t (*logits_hash)(const float* x, std::int64_t first_id, std::int64_t n);
  /// out[i] = exp((x[i] - max x) / temperature) / sum, in float32; entries of -infinity become 0, all of them where
  /// there is nothing else. In place allowed.
  void (*softmax)(const float* x, float temperature, float* out, std::int64_t n);
  /// log(sum over i of exp(x[i])), max subtracted; -infinity where there is nothing else.
  float (*log_sum_exp)(const float* x, std::int64_t n);
  /// out[i] = z[i] / temperature + G(seed, position, id), id = ids[i] >= 0, or first_id + i when ids is null. G:
  /// standard Gumbel noise -log(-log u) from an integer hash, docs/numerics.md.
  void (*gumbel_scores)(const float* z, const std::int32_t* ids, std::int64_t first_id, float temperature,
                        std::uint64_t seed, std::uint64_t position, float* out, std::int64_t n);
};

/// The names a user may force: "scalar", "avx2" (AVX-VNNI where present), "avx512" (VNNI; BF16 where present), and the
/// narrower "avx2-base", "avx512-base" that leave those extensions out. Throws Error for an unknown name or one this
/// CPU cannot run; empty = best.
const KernelTable& kernel_table(std::string_view name = {});
/// Every table this CPU can run, scalar first.
std::vector<const KernelTable*> runnable_kernel_tables();

}  // namespace drafthorse
