#include "kernels/scalar/choices.h"

#include <bit>
#include <limits>

#include "base/random.h"
#include "kernels/noise_key.h"
#include "kernels/scalar/functions.h"

namespace drafthorse::scalar {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float largest(const float* x, std::int64_t n) {
  float best = -kInfinity;
  for (std::int64_t i = 0; i < n; ++i) best = larger(x[i], best);
  return best;
}

/// Standard Gumbel noise from 64 random bits. The upper 41 choose the binade of v = 1 - u, each half as likely as the
/// one above it; the lower 23 are its mantissa. So v has 24 significant bits at every size down to 2^-41, and so has
/// -log u = -log1p(-v).
float gumbel(std::uint64_t bits) {
  const std::uint64_t upper = (bits >> 23) | 1u;
  const auto exponent = static_cast<std::uint32_t>(126 - (std::countl_zero(upper) - 23));
  const float v = std::bit_cast<float>((exponent << 23) | static_cast<std::uint32_t>(bits & 0x7fffffu));
  return -log(-log1p(-v));
}

}  // namespace

std::int64_t argmax(const float* x, std::int64_t n) {
  float best = -kInfinity;
  std::int64_t index = -1;
  for (std::int64_t i = 0; i < n; ++i) {
    if (x[i] > best || (index < 0 && x[i] == best)) {
      best = x[i];
      index = i;
    }
  }
  return index < 0 ? 0 : index;
}

std::uint64_t logits_hash(const float* x, std::int64_t first_id, std::int64_t n) {
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto id = static_cast<std::uint64_t>(first_id + i);
    sum += splitmix64((id << 32) | std::bit_cast<std::uint32_t>(x[i]), 0);
  }
  return sum;
}

void softmax(const float* x, float temperature, float* out, std::int64_t n) {
  const float best = largest(x, n);
  float lane[kLanes] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = x[i] == -kInfinity ? 0.0f : exp((x[i] - best) / temperature);
    lane[i % kLanes] = lane[i % kLanes] + out[i];
  }
  const float sum = sum_of_lanes(lane);
  if (sum == 0.0f) return;  // nothing but -infinity
  for (std::int64_t i = 0; i < n; ++i) out[i] = out[i] / sum;
}

float log_sum_exp(const float* x, std::int64_t n) {
  const float best = largest(x, n);
  float lane[kLanes] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    if (x[i] != -kInfinity) lane[i % kLanes] = lane[i % kLanes] + exp(x[i] - best);
  }
  const float sum = sum_of_lanes(lane);
  return sum == 0.0f ? -kInfinity : best + log(sum);
}

void gumbel_scores(const float* z, const std::int32_t* ids, std::int64_t first_id, float temperature,
                   std::uint64_t seed, std::uint64_t position, float* out, std::int64_t n) {
  const std::uint64_t key = noise_key(seed, position);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto id = static_cast<std::uint64_t>(ids != nullptr ? ids[i] : first_id + i);
    out[i] = z[i] / temperature + gumbel(splitmix64(key, id));
  }
}

}  // namespace drafthorse::scalar
