#include "model/layers/rope_frequencies.h"

#include <algorithm>
#include <cmath>

#include "ops/portable_math.h"

namespace drafthorse {
namespace {

constexpr double kTwoPi = 0x1.921fb54442d18p+2;

/// Long wavelengths are stretched by the factor, short ones stay, those between are mixed in proportion to the
/// rotations they make in the original context.
double llama3_frequency(const RopeConfig& rope, double frequency) {
  const double rotations = static_cast<double>(rope.original_max_position) * frequency / kTwoPi;
  if (rotations > rope.high_freq_factor) return frequency;
  if (rotations < rope.low_freq_factor) return frequency / rope.factor;
  const double kept = (rotations - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return frequency * ((1.0 - kept) / rope.factor + kept);
}

/// The (fractional) index of the frequency that makes `rotations` turns in the original context.
double yarn_index(const RopeConfig& rope, double rotations) {
  const double wavelength = static_cast<double>(rope.original_max_position) / (kTwoPi * rotations);
  return rope.rotary_dims * portable_log(wavelength) / (2.0 * portable_log(rope.theta));
}

void stretch_yarn(const RopeConfig& rope, std::vector<double>& frequencies) {
  const double first = std::max(std::floor(yarn_index(rope, rope.beta_fast)), 0.0);
  const double last = std::min(std::ceil(yarn_index(rope, rope.beta_slow)), rope.rotary_dims - 1.0);
  const double width = first == last ? 0.001 : last - first;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double stretched = std::clamp((static_cast<double>(i) - first) / width, 0.0, 1.0);
    frequencies[i] = frequencies[i] * (1.0 - stretched) + frequencies[i] / rope.factor * stretched;
  }
}

}  // namespace

std::vector<double> inverse_frequencies(const RopeConfig& rope) {
  std::vector<double> frequencies(static_cast<std::size_t>(rope.rotary_dims) / 2);
  const double log_theta = portable_log(rope.theta);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = portable_exp(-2.0 * static_cast<double>(i) / rope.rotary_dims * log_theta);
  }
  switch (rope.kind) {
    case RopeKind::kDefault:
      break;
    case RopeKind::kLinear:
      for (double& frequency : frequencies) frequency /= rope.factor;
      break;
    case RopeKind::kLlama3:
      for (double& frequency : frequencies) frequency = llama3_frequency(rope, frequency);
      break;
    case RopeKind::kYarn:
      stretch_yarn(rope, frequencies);
      break;
  }
  return frequencies;
}

RopeTable rope_table(const RopeConfig& rope, std::int64_t positions, ThreadPool& pool) {
  return RopeTable(inverse_frequencies(rope), rope.attention_factor, positions, rope.interleaved, pool);
}

}  // namespace drafthorse
