#include "kernels/avx2/rows.h"

#include <cstring>

#include "kernels/avx2/functions.h"

namespace drafthorse::avx2 {
namespace {

constexpr Index kTilePositions = 32;

/// Stores f(lanes of x) over x.
template <typename Function>
void map(float* x, Index n, Function f) {
  for (Index i = 0; i < n; i += kLanes) store_some(x, i, n, f(load_some(x, i, n)));
}

/// The bf16 values [i, i + 8) of a row of n, in order.
inline __m128i bf16_values(const float* row, Index i, Index n) {
  const __m256i bits = _mm256_srli_epi32(bf16_bits(load_some(row, i, n)), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
}

void write_bf16(Index head_dim, Index p, const float* key, const float* value, std::byte* key_tile,
                std::byte* value_tile) {
  alignas(16) std::uint32_t pairs[kLanes / 2];
  alignas(16) std::uint16_t halves[kLanes];
  auto* keys = reinterpret_cast<std::uint32_t*>(key_tile) + p;  // word (d / 2) * 32 + p
  auto* values = reinterpret_cast<std::uint16_t*>(value_tile) + (p / 2) * head_dim * 2 + p % 2;
  for (Index i = 0; i < head_dim; i += kLanes) {
    const Index dims = head_dim - i < kLanes ? head_dim - i : kLanes;
    _mm_store_si128(reinterpret_cast<__m128i*>(pairs), bf16_values(key, i, head_dim));
    _mm_store_si128(reinterpret_cast<__m128i*>(halves), bf16_values(value, i, head_dim));
    for (Index j = 0; j < dims / 2; ++j) keys[(i / 2 + j) * kTilePositions] = pairs[j];
    for (Index j = 0; j < dims; ++j) values[(i + j) * 2] = halves[j];
  }
}

void write_f32(Index head_dim, Index p, const float* key, const float* value, std::byte* key_tile,
               std::byte* value_tile) {
  auto* keys = reinterpret_cast<float*>(key_tile) + p;
  for (Index d = 0; d < head_dim; ++d) keys[d * kTilePositions] = key[d];
  std::memcpy(reinterpret_cast<float*>(value_tile) + p * head_dim, value,
              static_cast<std::size_t>(head_dim) * sizeof(float));
}

/// a0 b0 a1 b1 .. b7 from a and b, and back.
struct Two {
  __m256 first;
  __m256 second;
};
inline Two interleaved_lanes(Two x) {
  const __m256 low = _mm256_unpacklo_ps(x.first, x.second);
  const __m256 high = _mm256_unpackhi_ps(x.first, x.second);
  return {_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)};
}
inline Two separated_lanes(Two x) {
  const __m256 low = _mm256_permute2f128_ps(x.first, x.second, 0x20);
  const __m256 high = _mm256_permute2f128_ps(x.first, x.second, 0x31);
  return {_mm256_shuffle_ps(low, high, 0x88), _mm256_shuffle_ps(low, high, 0xdd)};
}

inline Two rotated(Two x, __m256 cos, __m256 sin) {
  return {_mm256_fmsub_ps(x.first, cos, _mm256_mul_ps(x.second, sin)),
          _mm256_fmadd_ps(x.second, cos, _mm256_mul_ps(x.first, sin))};
}

void rope_interleaved(float* x, const float* cos, const float* sin, Index half) {
  Index i = 0;
  for (; i + kLanes <= half; i += kLanes) {
    const Two pairs = separated_lanes({_mm256_loadu_ps(x + 2 * i), _mm256_loadu_ps(x + 2 * i + kLanes)});
    const Two mixed = interleaved_lanes(rotated(pairs, _mm256_loadu_ps(cos + i), _mm256_loadu_ps(sin + i)));
    _mm256_storeu_ps(x + 2 * i, mixed.first);
    _mm256_storeu_ps(x + 2 * i + kLanes, mixed.second);
  }
  for (; i < half; ++i) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    x[2 * i] = __builtin_fmaf(a, cos[i], -(b * sin[i]));
    x[2 * i + 1] = __builtin_fmaf(b, cos[i], a * sin[i]);
  }
}

}  // namespace

void rms_norm(const float* x, const float* weight, float eps, std::int64_t n, float* out) {
  __m256 low = _mm256_setzero_ps();
  __m256 high = _mm256_setzero_ps();
  Index i = 0;
  for (; i + kLanes < n; i += 2 * kLanes) {
    const __m256 a = _mm256_loadu_ps(x + i);
    const __m256 b = load_some(x, i + kLanes, n);
    low = _mm256_fmadd_ps(a, a, low);
    high = _mm256_fmadd_ps(b, b, high);
  }
  if (i < n) {
    const __m256 a = load_some(x, i, n);
    low = _mm256_fmadd_ps(a, a, low);
  }
  const float mean = sum_of_lanes(low, high) / static_cast<float>(n);
  const __m256 inverse = splat(1.0f / __builtin_sqrtf(mean + eps));
  for (i = 0; i < n; i += kLanes) {
    store_some(out, i, n, _mm256_mul_ps(_mm256_mul_ps(load_some(x, i, n), inverse), load_some(weight, i, n)));
  }
}

void rope(float* x, const float* cos, const float* sin, std::int64_t half, bool interleaved) {
  if (interleaved) return rope_interleaved(x, cos, sin, half);
  for (Index i = 0; i < half; i += kLanes) {
    const Two r = rotated({load_some(x, i, half), load_some(x + half, i, half)}, load_some(cos, i, half),
                          load_some(sin, i, half));
    store_some(x, i, half, r.first);
    store_some(x + half, i, half, r.second);
  }
}

void add(const float* a, float* x, std::int64_t n) {
  for (Index i = 0; i < n; i += kLanes) store_some(x, i, n, _mm256_add_ps(load_some(x, i, n), load_some(a, i, n)));
}

void scale(float s, float* x, std::int64_t n) {
  map(x, n, [s](__m256 v) { return _mm256_mul_ps(v, splat(s)); });
}

void silu_multiply(const float* gate, const float* up, float* out, std::int64_t n) {
  for (Index i = 0; i < n; i += kLanes) {
    store_some(out, i, n, _mm256_mul_ps(silu(load_some(gate, i, n)), load_some(up, i, n)));
  }
}

void softplus(float* x, std::int64_t n) {
  map(x, n, [](__m256 v) { return softplus(v); });
}

void softcap(float cap, float* x, std::int64_t n) {
  map(x, n, [cap](__m256 v) { return _mm256_mul_ps(splat(cap), tanh(_mm256_div_ps(v, splat(cap)))); });
}

void to_float(ElementType type, const std::byte* source, float* out, std::int64_t n) {
  if (type == ElementType::kF32) {
    std::memcpy(out, source, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  for (Index i = 0; i < n; i += kLanes) {
    __m128i halves = _mm_setzero_si128();
    const Index count = n - i < kLanes ? n - i : kLanes;
    std::memcpy(&halves, source + 2 * i, static_cast<std::size_t>(2 * count));
    const __m256 v = type == ElementType::kF16 ? _mm256_cvtph_ps(halves)
                                               : from_bits(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
    store_some(out, i, n, v);
  }
}

void kv_write(ElementType kv_type, std::int64_t head_dim, std::int64_t p, const float* key, const float* value,
              std::byte* key_tile, std::byte* value_tile) {
  if (kv_type == ElementType::kBF16) return write_bf16(head_dim, p, key, value, key_tile, value_tile);
  write_f32(head_dim, p, key, value, key_tile, value_tile);
}

}  // namespace drafthorse::avx2
