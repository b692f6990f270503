#include "kernels/scalar/linear.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/cpu_features.h"
#include "kernels/scalar/linear_bits.h"
#include "kernels/scalar/quantized_group.h"

namespace drafthorse::scalar {
namespace {

float packed_value(WeightType type, float x) {
  if (x != x) return kNan;
  return type == WeightType::kBF16 ? bf16_to_float(float_to_bf16(x)) : x;
}

/// The 32 weights of column k of a block: where they lie, or decoded into `buffer`.
[[gnu::always_inline]] inline const float* decode(WeightType type, const std::byte* block, std::int64_t k,
                                                  float* buffer) {
  if (type == WeightType::kF32) return reinterpret_cast<const float*>(block) + k * kTileRows;
  if (type == WeightType::kF16) {
    const auto* half = reinterpret_cast<const std::uint16_t*>(block) + k * kTileRows;
    for (std::int64_t r = 0; r < kTileRows; ++r) buffer[r] = f16_to_float(half[r]);
  } else {
    const auto* pairs = reinterpret_cast<const std::uint32_t*>(block) + (k / 2) * kTileRows;
    const int up = k % 2 == 0 ? 16 : 0;
    for (std::int64_t r = 0; r < kTileRows; ++r) buffer[r] = std::bit_cast<float>((pairs[r] << up) & 0xffff0000u);
  }
  return buffer;
}

[[gnu::always_inline]] inline void add_group(WeightType type, const std::byte* block, const float* x, float* sums) {
  for (std::int64_t k = 0; k < kGroup; ++k) {
    float buffer[kTileRows];
    const float* w = decode(type, block, k, buffer);
    for (std::int64_t r = 0; r < kTileRows; ++r) sums[r] = std::fma(w[r], x[k], sums[r]);
  }
}

[[gnu::always_inline]] inline void add_group(const std::byte* block, const QuantizedGroup& x, float* sums) {
  const auto* scales = reinterpret_cast<const std::uint16_t*>(block);
  const auto* words = reinterpret_cast<const std::uint32_t*>(block + kTileRows * 2);  // four columns of an output each
  std::int32_t dot[kTileRows] = {};
  for (std::int64_t k = 0; k < kGroup; ++k) {
    const std::uint32_t* column = words + k / 4 * kTileRows;
    const std::int64_t shift = k % 4 * 8;
    std::int32_t q[kTileRows];
    for (std::int64_t r = 0; r < kTileRows; ++r) q[r] = static_cast<std::int32_t>(column[r] >> shift & 255) - 128;
    for (std::int64_t r = 0; r < kTileRows; ++r) dot[r] += q[r] * x.q[k];
  }
  for (std::int64_t r = 0; r < kTileRows; ++r) {
    sums[r] = std::fma(static_cast<float>(dot[r]), f16_to_float(scales[r]) * x.scale, sums[r]);
  }
}

[[gnu::always_inline]] inline void linear_body(const LinearTask& task) {
  const std::size_t block_bytes = group_bytes(task.type);
  for (int t = 0; t < task.tile_count; ++t) {
    const std::int64_t first_output = task.tiles[t] * kTileRows;
    const std::int64_t outputs = std::min(kTileRows, task.outputs - first_output);
    for (std::int64_t row = 0; row < task.rows; ++row) {
      const std::byte* block = task.weights + static_cast<std::size_t>(task.tiles[t]) * task.tile_bytes;
      float sums[kTileRows] = {};
      for (std::int64_t g = 0; g < task.groups; ++g, block += block_bytes) {
        const std::int64_t index = row * task.groups + g;
        if (task.type == WeightType::kQ8_0) {
          add_group(block, reinterpret_cast<const QuantizedGroup*>(task.x)[index], sums);
        } else {
          add_group(task.type, block, reinterpret_cast<const float*>(task.x) + index * kGroup, sums);
        }
      }
      float* y = task.y + row * task.y_stride + first_output;
      for (std::int64_t n = 0; n < outputs; ++n)
        y[n] = task.bias == nullptr ? sums[n] : sums[n] + task.bias[first_output + n];
    }
  }
}

/// The same code with the processor's own fused multiply-add instead of the C library's: same bits, far faster.
[[gnu::target("avx2,fma")]] void linear_with_fma(const LinearTask& task) { linear_body(task); }

}  // namespace

std::size_t packed_rows_bytes(WeightType type, std::int64_t rows, std::int64_t cols) {
  const std::size_t record = is_quantized(type) ? sizeof(QuantizedGroup) : kGroup * sizeof(float);
  const auto groups = static_cast<std::size_t>(padded_groups(type, cols));
  return (static_cast<std::size_t>(rows) * groups * record + 63) / 64 * 64;
}

void pack_rows(WeightType type, const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols,
               std::int64_t group_begin, std::int64_t group_end, std::byte* out) {
  const std::int64_t groups = padded_groups(type, cols);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t g = group_begin; g < group_end; ++g) {
      float values[kGroup] = {};
      const std::int64_t column = std::min(g * kGroup, cols);  // padding is past the last
      std::copy_n(x + row * x_stride + column, std::min(kGroup, cols - column), values);
      const std::int64_t index = row * groups + g;
      if (is_quantized(type)) {
        reinterpret_cast<QuantizedGroup*>(out)[index] = quantized(values);
      } else {
        float* packed = reinterpret_cast<float*>(out) + index * kGroup;
        for (std::int64_t k = 0; k < kGroup; ++k) packed[k] = packed_value(type, values[k]);
      }
    }
  }
}

void linear(const LinearTask& task) {
  if (is_quantized(task.type) && task.type != WeightType::kQ8_0) return linear_bits(task);
  if (cpu_features().avx2_fma_f16c) {
    linear_with_fma(task);
  } else {
    linear_body(task);
  }
}

}  // namespace drafthorse::scalar
