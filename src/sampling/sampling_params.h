#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace drafthorse {

/// Below it sampling is greedy: nothing but the largest logit would ever be drawn, and a logit divided by less may
/// leave float's range, where all are equal.
constexpr float kLeastTemperature = 1e-6f;

/// A request's sampling options. Out-of-range values mean "off", as each line says.
struct SamplingParams {
  float temperature = 0.0f;                ///< < kLeastTemperature: greedy
  std::int64_t top_k = 0;                  ///< <= 0 or >= vocabulary: off
  float top_p = 1.0f;                      ///< <= 0 or >= 1: off
  float min_p = 0.0f;                      ///< <= 0 or > 1: off
  std::optional<std::uint64_t> seed = {};  ///< none: one is drawn

  bool greedy() const { return !(temperature >= kLeastTemperature); }
};

/// How drafts are checked against the target at temperature > 0 (greedy needs no choice).
enum class AcceptMode : std::uint8_t {
  kCoupled,    ///< target and draft share their noise: same tokens with and without a draft
  kRejection,  ///< accept with min(1, p/q), else the residual: same distribution
};

/// "coupled", "rejection".
std::string_view accept_mode_name(AcceptMode mode);
/// The inverse; "auto" is none. Throws Error for any other word.
std::optional<AcceptMode> parse_accept_mode(std::string_view word);

/// What a request's draws depend on. Worth printing: with it the same output can be had again.
struct Randomness {
  AcceptMode mode = AcceptMode::kCoupled;
  std::uint64_t seed = 0;
};
/// Settles what a request left open. `wanted` none (auto): coupled when the request has a seed, rejection otherwise.
/// The seed is the request's, or one from the operating system; greedy requests draw none.
Randomness resolve_randomness(const SamplingParams& params, std::optional<AcceptMode> wanted);

}  // namespace drafthorse
