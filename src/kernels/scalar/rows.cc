#include "kernels/scalar/rows.h"

#include <cmath>
#include <cstring>

#include "kernels/scalar/functions.h"
#include "tensor/kv_layout.h"

namespace drafthorse::scalar {

void rms_norm(const float* x, const float* weight, float eps, std::int64_t n, float* out) {
  float lane[kLanes] = {};
  for (std::int64_t i = 0; i < n; ++i) lane[i % kLanes] = fma(x[i], x[i], lane[i % kLanes]);
  const float mean = sum_of_lanes(lane) / static_cast<float>(n);
  const float inverse = 1.0f / std::sqrt(mean + eps);
  for (std::int64_t i = 0; i < n; ++i) out[i] = (x[i] * inverse) * weight[i];
}

void rope(float* x, const float* cos, const float* sin, std::int64_t half, bool interleaved) {
  const std::int64_t step = interleaved ? 2 : 1;
  const std::int64_t partner = interleaved ? 1 : half;
  for (std::int64_t i = 0; i < half; ++i) {
    float* first = x + i * step;
    float* second = first + partner;
    const float a = *first;
    const float b = *second;
    *first = fma(a, cos[i], -(b * sin[i]));
    *second = fma(b, cos[i], a * sin[i]);
  }
}

void add(const float* a, float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = x[i] + a[i];
}

void scale(float s, float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = x[i] * s;
}

void silu_multiply(const float* gate, const float* up, float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = silu(gate[i]) * up[i];
}

void softplus(float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = softplus(x[i]);
}

void softcap(float cap, float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = cap * tanh(x[i] / cap);
}

void to_float(ElementType type, const std::byte* source, float* out, std::int64_t n) {
  drafthorse::to_float(type, source, static_cast<std::size_t>(n), out);
}

void kv_write(ElementType kv_type, std::int64_t head_dim, std::int64_t p, const float* key, const float* value,
              std::byte* key_tile, std::byte* value_tile) {
  const KvLayout layout{.type = kv_type, .kv_heads = 1, .head_dim = head_dim};
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const std::int64_t k = layout.key_element(p, d);
    const std::int64_t v = layout.value_element(p, d);
    if (kv_type == ElementType::kBF16) {
      reinterpret_cast<std::uint16_t*>(key_tile)[k] = float_to_bf16(key[d]);
      reinterpret_cast<std::uint16_t*>(value_tile)[v] = float_to_bf16(value[d]);
    } else {
      reinterpret_cast<float*>(key_tile)[k] = key[d];
      reinterpret_cast<float*>(value_tile)[v] = value[d];
    }
  }
}

}  // namespace drafthorse::scalar
