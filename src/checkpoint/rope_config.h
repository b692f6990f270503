#pragma once

#include <cstdint>
#include <optional>

#include "checkpoint/config_keys.h"

namespace drafthorse {

/// How the inverse frequencies of a rotary embedding are stretched for long contexts.
enum class RopeKind : std::uint8_t {
  kDefault,  ///< not at all
  kLinear,   ///< every frequency divided by `factor` (position interpolation, arXiv 2306.15595)
  kLlama3,   ///< low frequencies divided by `factor`, a ramp between two wavelengths (Llama 3.1)
  kYarn,     ///< a ramp over frequency indices, and q and k scaled (arXiv 2309.00071)
};

/// A rotary embedding as a config describes it. Values are checked and complete; the frequencies themselves are
/// computed where they are used.
struct RopeConfig {
  double theta = 10000.0;  ///< base; > 0 (> 1 for yarn)
  RopeKind kind = RopeKind::kDefault;
  double factor = 1.0;                     ///< linear, llama3 (>= 1), yarn; > 0
  double low_freq_factor = 1.0;            ///< llama3; > 0
  double high_freq_factor = 4.0;           ///< llama3; > low_freq_factor
  std::int64_t original_max_position = 0;  ///< llama3, yarn: the context length of the first training; > 0 there
  double beta_fast = 32.0;        ///< yarn: rotations over the original context above which nothing is stretched
  double beta_slow = 1.0;         ///< yarn: rotations below which everything is; 0 < beta_slow < beta_fast
  double attention_factor = 1.0;  ///< rotated dims of q and of k are multiplied by it; 1 unless yarn
  bool interleaved = false;       ///< pairs (2i, 2i+1) instead of (i, i + rotary_dims / 2)
  int rotary_dims = 0;            ///< leading dims that rotate: even, 2..head_dim; the rest pass through
};

/// What a family says when its config is silent.
struct RopeDefaults {
  std::optional<double> theta;  ///< nothing: the key is required
  double partial_rotary_factor = 1.0;
};

/// Reads the rotary embedding of heads of `head_dim` from either spelling: rope_theta, rope_scaling,
/// partial_rotary_factor beside the other keys, or all of them inside rope_parameters (which wins). Throws Error naming
/// file, key and value for an unknown or unsupported kind, an unknown key of the rope object, a missing or impossible
/// number.
RopeConfig parse_rope(const ConfigKeys& config, int head_dim, const RopeDefaults& defaults);

}  // namespace drafthorse
