#include "quant/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "tensor/element_type.h"

namespace drafthorse {
namespace {

constexpr std::int64_t kHalfGroup = 16;

/// v rounded to the nearest whole number, ties to even, and clamped. v must not be NaN.
int nearest(float v, int least, int most) {
  v = std::clamp(v, static_cast<float>(least), static_cast<float>(most));
  constexpr float kRounder = 0x1.8p23f;  // adding it leaves round-to-even(v) + 2^22 in the low mantissa bits
  return std::bit_cast<std::int32_t>(v + kRounder) - std::bit_cast<std::int32_t>(kRounder);
}

bool all_finite(const float* x, std::int64_t count) {
  bool finite = true;
  for (std::int64_t i = 0; i < count; ++i) finite &= std::isfinite(x[i]);
  return finite;
}

/// The value of largest magnitude, with its sign; the first of equals.
float signed_peak(const float* x, std::int64_t count) {
  float peak = 0.0f;
  for (std::int64_t i = 0; i < count; ++i) {
    if (std::fabs(x[i]) > std::fabs(peak)) peak = x[i];
  }
  return peak;
}

/// x ~ d * (q - zero). The peak gets q = 0, the end of the range that reaches further.
void fit_symmetric(const float* x, std::int64_t count, int zero, QuantizedBlock& block) {
  block.d = float_to_f16(signed_peak(x, count) / static_cast<float>(-zero));
  const float d = f16_to_float(block.d);
  for (std::int64_t i = 0; i < kGroup; ++i) {
    block.q[i] = static_cast<std::int16_t>(d == 0.0f ? zero : zero + nearest(x[i] / d, -zero, zero - 1));
  }
}

void fit_q8(const float* x, std::int64_t count, QuantizedBlock& block) {
  block.d = float_to_f16(std::fabs(signed_peak(x, count)) / 127.0f);
  const float d = f16_to_float(block.d);
  for (std::int64_t i = 0; i < kGroup; ++i) {
    block.q[i] = static_cast<std::int16_t>(d == 0.0f ? 0 : nearest(x[i] / d, -127, 127));
  }
}

/// x ~ d * q + m, q up to `top`: m is the smallest value, m + d * top the largest.
void fit_affine(const float* x, std::int64_t count, int top, QuantizedBlock& block) {
  const auto [least, most] = std::minmax_element(x, x + count);
  block.d = float_to_f16(static_cast<float>((static_cast<double>(*most) - *least) / top));
  block.m = float_to_f16(*least);
  const float d = f16_to_float(block.d);
  const float m = f16_to_float(block.m);
  for (std::int64_t i = 0; i < kGroup; ++i) {
    block.q[i] = static_cast<std::int16_t>(d == 0.0f ? 0 : nearest((x[i] - m) / d, 0, top));
  }
}

/// x ~ scale * q - offset, neither negative.
struct Line {
  float scale;
  float offset;
};

int integer_on(Line line, float x, int top) {
  return line.scale == 0.0f ? 0 : nearest((x + line.offset) / line.scale, 0, top);
}

double error_of(Line line, const float* x, std::int64_t count, int top) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double e = static_cast<double>(line.scale) * integer_on(line, x[i], top) - line.offset - x[i];
    sum += e * e;
  }
  return sum;
}

/// The least-squares line through (q, x), q as `line` quantises; `line` itself where there is none.
Line refined(Line line, const float* x, std::int64_t count, int top) {
  double q_sum = 0;
  double qq_sum = 0;
  double x_sum = 0;
  double qx_sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double q = integer_on(line, x[i], top);
    q_sum += q;
    qq_sum += q * q;
    x_sum += x[i];
    qx_sum += q * x[i];
  }
  const auto n = static_cast<double>(count);
  const double determinant = n * qq_sum - q_sum * q_sum;
  if (determinant <= 0) return line;
  double scale = (n * qx_sum - q_sum * x_sum) / determinant;
  double offset = (scale * q_sum - x_sum) / n;
  if (offset < 0) {
    offset = 0;
    scale = qx_sum / qq_sum;
  }
  return scale > 0 ? Line{static_cast<float>(scale), static_cast<float>(offset)} : line;
}

/// From the line through the smallest (or 0) and the largest value, three refinements, the best of all.
Line fit_line(const float* x, std::int64_t count, int top) {
  if (count <= 0) return {0.0f, 0.0f};
  const auto [least, most] = std::minmax_element(x, x + count);
  const float low = std::min(*least, 0.0f);
  Line line{static_cast<float>((static_cast<double>(*most) - low) / top), 0.0f - low};
  Line best = line;
  double best_error = error_of(line, x, count, top);
  for (int i = 0; i < 3 && best_error > 0; ++i) {
    line = refined(line, x, count, top);
    const double error = error_of(line, x, count, top);
    if (error < best_error) {
      best = line;
      best_error = error;
    }
  }
  return best;
}

void fit_two_level_affine(const float* x, std::int64_t count, int top, QuantizedBlock& block) {
  constexpr int kMostScale = 63;
  Line lines[8];
  float largest_scale = 0;
  float largest_offset = 0;
  for (std::int64_t g = 0; g < 8; ++g) {
    lines[g] = fit_line(x + g * kGroup, std::min(kGroup, count - g * kGroup), top);
    largest_scale = std::max(largest_scale, lines[g].scale);
    largest_offset = std::max(largest_offset, lines[g].offset);
  }
  block.d = float_to_f16(largest_scale / kMostScale);
  block.m = float_to_f16(largest_offset / kMostScale);
  const float d = f16_to_float(block.d);
  const float m = f16_to_float(block.m);
  for (std::int64_t g = 0; g < 8; ++g) {
    const int scale = d == 0.0f ? 0 : nearest(lines[g].scale / d, 0, kMostScale);
    const int offset = m == 0.0f ? 0 : nearest(lines[g].offset / m, 0, kMostScale);
    block.scale[g] = static_cast<std::int16_t>(scale);
    block.offset[g] = static_cast<std::int16_t>(offset);
    const Line stored{d * static_cast<float>(scale), m * static_cast<float>(offset)};
    for (std::int64_t i = g * kGroup; i < (g + 1) * kGroup; ++i) {
      block.q[i] = static_cast<std::int16_t>(integer_on(stored, x[i], top));
    }
  }
}

/// The scale of x ~ scale * q, q in [-32, 31]: the peak at -32, then two least-squares steps, the best of all.
float fit_scale(const float* x, std::int64_t count) {
  float scale = signed_peak(x, count) / -32.0f;
  float best = scale;
  double best_error = HUGE_VAL;
  for (int i = 0; i < 3 && scale != 0.0f; ++i) {
    double error = 0;
    double qq_sum = 0;
    double qx_sum = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      const double q = nearest(x[k] / scale, -32, 31);
      const double e = static_cast<double>(scale) * q - x[k];
      error += e * e;
      qq_sum += q * q;
      qx_sum += q * x[k];
    }
    if (error < best_error) {
      best = scale;
      best_error = error;
    }
    scale = qq_sum == 0 ? 0.0f : static_cast<float>(qx_sum / qq_sum);
  }
  return best;
}

void fit_q6_k(const float* x, std::int64_t count, QuantizedBlock& block) {
  float scales[16];
  for (std::int64_t h = 0; h < 16; ++h) {
    scales[h] = fit_scale(x + h * kHalfGroup, std::min(kHalfGroup, count - h * kHalfGroup));
  }
  block.d = float_to_f16(signed_peak(scales, 16) / -128.0f);
  const float d = f16_to_float(block.d);
  for (std::int64_t h = 0; h < 16; ++h) {
    const int integer = d == 0.0f ? 0 : nearest(scales[h] / d, -128, 127);
    block.scale[h] = static_cast<std::int16_t>(integer);
    const float scale = d * static_cast<float>(integer);
    for (std::int64_t i = h * kHalfGroup; i < (h + 1) * kHalfGroup; ++i) {
      block.q[i] = static_cast<std::int16_t>(scale == 0.0f ? 32 : 32 + nearest(x[i] / scale, -32, 31));
    }
  }
}

}  // namespace

bool quantize(WeightType type, const float* values, std::int64_t count, QuantizedBlock& block) {
  DRAFTHORSE_CHECK(1 <= count && count <= file_block_cols(type),
                   count << " values in a block of " << weight_name(type));
  if (!all_finite(values, count)) return false;
  block = {};
  switch (type) {
    case WeightType::kQ8_0:
      fit_q8(values, count, block);
      break;
    case WeightType::kQ4_0:
      fit_symmetric(values, count, 8, block);
      break;
    case WeightType::kQ5_0:
      fit_symmetric(values, count, 16, block);
      break;
    case WeightType::kQ4_1:
      fit_affine(values, count, 15, block);
      break;
    case WeightType::kQ5_1:
      fit_affine(values, count, 31, block);
      break;
    case WeightType::kQ4K:
      fit_two_level_affine(values, count, 15, block);
      break;
    case WeightType::kQ5K:
      fit_two_level_affine(values, count, 31, block);
      break;
    case WeightType::kQ6K:
      fit_q6_k(values, count, block);
      break;
    default:
      return false;
  }
  return is_finite(block);
}

}  // namespace drafthorse
