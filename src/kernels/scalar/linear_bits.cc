#include "kernels/scalar/linear_bits.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/cpu_features.h"
#include "kernels/scalar/quantized_group.h"
#include "quant/bit_format.h"
#include "tensor/element_type.h"

namespace drafthorse::scalar {
namespace {

constexpr std::int64_t kHalfGroup = 16;

/// The integers of column k of a group, one per output.
template <typename Format>
[[gnu::always_inline]] inline void decode(const std::byte* group, std::int64_t k, std::int32_t* q) {
  const std::int64_t step = k / 4;
  const std::int64_t byte_shift = k % 4 * 8;  // a word holds bytes of four columns of one output
  const auto* low = reinterpret_cast<const std::uint32_t*>(group + Format::kLowStart) + step / 2 * kTileRows;
  const std::int64_t low_shift = byte_shift + step % 2 * 4;
  for (std::int64_t r = 0; r < kTileRows; ++r) q[r] = static_cast<std::int32_t>(low[r] >> low_shift & 15);
  if constexpr (Format::kHighBits > 0) {
    constexpr std::int64_t kSteps = 8 / Format::kHighBits;  // whose bits share a byte
    const auto* high = reinterpret_cast<const std::uint32_t*>(group + Format::kHighStart) + step / kSteps * kTileRows;
    const std::int64_t high_shift = byte_shift + step % kSteps * Format::kHighBits;
    constexpr std::uint32_t kMask = (1u << Format::kHighBits) - 1;
    for (std::int64_t r = 0; r < kTileRows; ++r)
      q[r] |= static_cast<std::int32_t>((high[r] >> high_shift & kMask) << 4);
  }
  for (std::int64_t r = 0; r < kTileRows; ++r) q[r] -= Format::kZero;
}

[[gnu::always_inline]] inline void load_halves(const std::byte* halves, float* out) {
  std::uint16_t bits[kTileRows];
  std::memcpy(bits, halves, sizeof bits);
  for (std::int64_t r = 0; r < kTileRows; ++r) out[r] = f16_to_float(bits[r]);
}

/// Adds one group's products: block is where the group's header is.
template <typename Format>
[[gnu::always_inline]] inline void add_group(const std::byte* block, const std::byte* group, const QuantizedGroup& x,
                                             float* sums) {
  std::int32_t halves[2][kTileRows] = {};  // dot products of columns 0 to 15 and 16 to 31
  std::int32_t x_sum = 0;
  for (std::int64_t k = 0; k < kGroup; ++k) {
    std::int32_t q[kTileRows];
    decode<Format>(group, k, q);
    for (std::int64_t r = 0; r < kTileRows; ++r) halves[k / kHalfGroup][r] += q[r] * x.q[k];
    x_sum += x.q[k];
  }
  float scale[kTileRows];
  load_halves(block, scale);
  std::int32_t dot[kTileRows];
  if constexpr (Format::kTwoLevel && !Format::kAffine) {
    const auto* factors = reinterpret_cast<const std::int8_t*>(group);
    for (std::int64_t r = 0; r < kTileRows; ++r) {
      dot[r] = factors[r] * halves[0][r] + factors[kTileRows + r] * halves[1][r];
    }
  } else {
    for (std::int64_t r = 0; r < kTileRows; ++r) dot[r] = halves[0][r] + halves[1][r];
  }
  if constexpr (Format::kAffine) {
    float offset[kTileRows];
    load_halves(block + Format::kOffsetStart, offset);
    if constexpr (Format::kTwoLevel) {
      const auto* factors = reinterpret_cast<const std::uint8_t*>(group);
      for (std::int64_t r = 0; r < kTileRows; ++r) {
        scale[r] *= static_cast<float>(factors[r]);
        offset[r] = -(offset[r] * static_cast<float>(factors[kTileRows + r]));
      }
    }
    const float x_total = x.scale * static_cast<float>(x_sum);
    for (std::int64_t r = 0; r < kTileRows; ++r) {
      sums[r] = std::fma(static_cast<float>(dot[r]), scale[r] * x.scale, sums[r]);
      sums[r] = std::fma(offset[r], x_total, sums[r]);
    }
  } else {
    for (std::int64_t r = 0; r < kTileRows; ++r) {
      sums[r] = std::fma(static_cast<float>(dot[r]), scale[r] * x.scale, sums[r]);
    }
  }
}

template <typename Format>
[[gnu::always_inline]] inline void linear_of(const LinearTask& task) {
  for (int t = 0; t < task.tile_count; ++t) {
    const std::int64_t first_output = task.tiles[t] * kTileRows;
    const std::int64_t outputs = std::min(kTileRows, task.outputs - first_output);
    for (std::int64_t row = 0; row < task.rows; ++row) {
      const std::byte* block = task.weights + static_cast<std::size_t>(task.tiles[t]) * task.tile_bytes;
      const auto* x = reinterpret_cast<const QuantizedGroup*>(task.x) + row * task.groups;
      float sums[kTileRows] = {};
      for (std::int64_t g = 0; g < task.groups; g += Format::kBlockGroups, block += Format::kBlockBytes) {
        const std::byte* group = block + Format::kHeaderBytes;
        for (std::int64_t i = 0; i < Format::kBlockGroups; ++i, group += Format::kGroupBytes) {
          add_group<Format>(block, group, x[g + i], sums);
        }
      }
      float* y = task.y + row * task.y_stride + first_output;
      for (std::int64_t n = 0; n < outputs; ++n)
        y[n] = task.bias == nullptr ? sums[n] : sums[n] + task.bias[first_output + n];
    }
  }
}

/// The same code with the processor's own fused multiply-add instead of the C library's: same bits, far faster.
template <typename Format>
[[gnu::target("avx2,fma")]] void linear_with_fma(const LinearTask& task) {
  linear_of<Format>(task);
}

}  // namespace

void linear_bits(const LinearTask& task) {
  with_bit_format(task.type, [&]<typename Format>(Format) {
    if (cpu_features().avx2_fma_f16c) {
      linear_with_fma<Format>(task);
    } else {
      linear_of<Format>(task);
    }
  });
}

}  // namespace drafthorse::scalar
