#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "quant/bit_format.h"
#include "quant/packed_matrix.h"

namespace drafthorse {

/// The numeric contract of linear layers (docs/numerics.md) written down once more, output by output, from the matrix'
/// unpacked values and the scales of its blocks.
class LinearContract {
 public:
  explicit LinearContract(const PackedMatrix& matrix) : matrix_(matrix) {
    for (std::int64_t n = 0; n < matrix.rows; ++n) {
      for (std::int64_t k = 0; k < padded(); ++k) weights_.push_back(unpacked(matrix, n, k));
    }
  }

  std::vector<float> row(const float* x) const {
    std::vector<float> values(x, x + matrix_.cols);
    values.resize(static_cast<std::size_t>(padded()), 0.0f);
    std::vector<float> y;
    for (std::int64_t n = 0; n < matrix_.rows; ++n) {
      const float sum = is_quantized(matrix_.type) ? integer_sum(n, values) : float_sum(n, values);
      y.push_back(matrix_.bias.size() == 0 ? sum : sum + matrix_.bias.as<float>()[n]);
    }
    return y;
  }

  /// The exact product and the sum of magnitudes, activations rounded to bf16 for bf16 weights.
  void exact(std::int64_t n, const float* x, double& sum, double& magnitude) const {
    sum = magnitude = 0;
    for (std::int64_t k = 0; k < matrix_.cols; ++k) {
      const double term = static_cast<double>(weight(n, k)) * activation(x[k]);
      sum += term;
      magnitude += std::fabs(term);
    }
  }

 private:
  /// w = scale * factor[k / 16] * q + offset in one group of one output. A factor is apart from the scale where the
  /// contract multiplies it as an integer.
  struct GroupScales {
    float scale = 0;
    int factor[2] = {1, 1};
    float offset = 0;
    bool affine = false;
  };

  std::int64_t padded() const { return matrix_.groups() * kGroup; }
  float weight(std::int64_t n, std::int64_t k) const { return weights_[static_cast<std::size_t>(n * padded() + k)]; }
  float activation(float x) const { return matrix_.type == WeightType::kBF16 ? bf16_to_float(float_to_bf16(x)) : x; }

  float float_sum(std::int64_t n, const std::vector<float>& x) const {
    float sum = 0;
    for (std::int64_t k = 0; k < padded(); ++k)
      sum = std::fma(weight(n, k), activation(x[static_cast<std::size_t>(k)]), sum);
    return sum;
  }

  GroupScales scales(std::int64_t n, std::int64_t g) const {
    const std::int64_t groups = block_groups(matrix_.type);
    const std::byte* block = matrix_.data.data() + static_cast<std::size_t>(n / kTileRows) * matrix_.tile_bytes() +
                             static_cast<std::size_t>(g / groups * groups) * group_bytes(matrix_.type);
    const std::int64_t r = n % kTileRows;
    const auto* halves = reinterpret_cast<const std::uint16_t*>(block);
    GroupScales out;
    out.scale = f16_to_float(halves[r]);
    with_bit_format(matrix_.type, [&]<typename Format>(Format) {
      const std::byte* integers =
          block + Format::kHeaderBytes + static_cast<std::size_t>(g % groups) * Format::kGroupBytes;
      if (Format::kAffine) {
        out.affine = true;
        out.offset = f16_to_float(halves[kTileRows + r]);
        if (Format::kTwoLevel) {
          out.scale *= static_cast<float>(std::to_integer<int>(integers[r]));
          out.offset *= -static_cast<float>(std::to_integer<int>(integers[kTileRows + r]));
        }
      } else if (Format::kTwoLevel) {
        for (int h = 0; h < 2; ++h) out.factor[h] = static_cast<std::int8_t>(integers[h * kTileRows + r]);
      }
    });
    return out;
  }

  float integer_sum(std::int64_t n, const std::vector<float>& x) const {
    float sum = 0;
    for (std::int64_t g = 0; g < matrix_.groups(); ++g) {
      const float* group = x.data() + g * kGroup;
      float amax = 0;
      for (std::int64_t k = 0; k < kGroup; ++k) amax = std::max(amax, std::fabs(group[k]));
      const float inverse = amax > 0 ? 127.0f / amax : 0.0f;
      const float x_scale = amax / 127.0f;
      const GroupScales w = scales(n, g);
      std::int64_t dot = 0;
      std::int64_t x_sum = 0;
      for (std::int64_t k = 0; k < kGroup; ++k) {
        const int factor = w.factor[k / 16];
        const double unit = static_cast<double>(w.scale) * factor;
        const double q =
            unit == 0 ? 0.0 : std::nearbyint((static_cast<double>(weight(n, g * kGroup + k)) - w.offset) / unit);
        const auto xq = static_cast<std::int64_t>(std::nearbyint(group[k] * inverse));
        dot += factor * static_cast<std::int64_t>(q) * xq;
        x_sum += xq;
      }
      sum = std::fma(static_cast<float>(dot), w.scale * x_scale, sum);
      if (w.affine) sum = std::fma(w.offset, x_scale * static_cast<float>(x_sum), sum);
    }
    return sum;
  }

  const PackedMatrix& matrix_;
  std::vector<float> weights_;
};

}  // namespace drafthorse
