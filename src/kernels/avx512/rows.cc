#include "kernels/avx512/rows.h"

#include <cstring>

#include "kernels/avx512/functions.h"

namespace drafthorse::avx512 {
namespace {

constexpr Index kTilePositions = 32;

/// Stores f(lanes of x) over x.
template <typename Function>
void map(float* x, Index n, Function f) {
  for (Index i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    _mm512_mask_storeu_ps(x + i, lanes, f(_mm512_maskz_loadu_ps(lanes, x + i)));
  }
}

void write_bf16(Index head_dim, Index p, const float* key, const float* value, std::byte* key_tile,
                std::byte* value_tile) {
  alignas(64) std::uint32_t pairs[kLanes];
  alignas(64) std::uint16_t halves[2 * kLanes];
  auto* keys = reinterpret_cast<std::uint32_t*>(key_tile) + p;  // word (d / 2) * 32 + p
  auto* values = reinterpret_cast<std::uint16_t*>(value_tile) + (p / 2) * head_dim * 2 + p % 2;
  for (Index i = 0; i < head_dim; i += 2 * kLanes) {
    const Index dims = head_dim - i < 2 * kLanes ? head_dim - i : 2 * kLanes;
    _mm512_store_si512(pairs, packed_bf16(load_some(key, i, head_dim), load_some(key, i + kLanes, head_dim)));
    _mm512_store_si512(halves, packed_bf16(load_some(value, i, head_dim), load_some(value, i + kLanes, head_dim)));
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

/// The even (odd) lanes of the 32 values (a, b).
inline __m512 even_lanes(__m512 a, __m512 b) {
  const __m512i index = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_ps(a, index, b);
}
inline __m512 odd_lanes(__m512 a, __m512 b) {
  const __m512i index = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return _mm512_permutex2var_ps(a, index, b);
}

struct Rotated {
  __m512 first;
  __m512 second;
};

inline Rotated rotated(__m512 a, __m512 b, __m512 cos, __m512 sin) {
  return {_mm512_fmsub_ps(a, cos, _mm512_mul_ps(b, sin)), _mm512_fmadd_ps(b, cos, _mm512_mul_ps(a, sin))};
}

void rope_interleaved(float* x, const float* cos, const float* sin, Index half) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  for (Index i = 0; i < half; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, half);
    const __mmask16 first = lanes_left(2 * i, 2 * half);
    const __mmask16 second = half - i > kLanes / 2 ? lanes_left(2 * i + kLanes, 2 * half) : __mmask16{0};
    const __m512 a = _mm512_maskz_loadu_ps(first, x + 2 * i);
    const __m512 b = _mm512_maskz_loadu_ps(second, x + 2 * i + kLanes);
    const Rotated r = rotated(even_lanes(a, b), odd_lanes(a, b), _mm512_maskz_loadu_ps(lanes, cos + i),
                              _mm512_maskz_loadu_ps(lanes, sin + i));
    _mm512_mask_storeu_ps(x + 2 * i, first, _mm512_permutex2var_ps(r.first, low, r.second));
    _mm512_mask_storeu_ps(x + 2 * i + kLanes, second, _mm512_permutex2var_ps(r.first, high, r.second));
  }
}

}  // namespace

void rms_norm(const float* x, const float* weight, float eps, std::int64_t n, float* out) {
  __m512 lanes_sum = _mm512_setzero_ps();
  for (Index i = 0; i < n; i += kLanes) {
    const __m512 v = _mm512_maskz_loadu_ps(lanes_left(i, n), x + i);
    lanes_sum = _mm512_fmadd_ps(v, v, lanes_sum);
  }
  const float mean = sum_of_lanes(lanes_sum) / static_cast<float>(n);
  const __m512 inverse = splat(1.0f / __builtin_sqrtf(mean + eps));
  for (Index i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + i), inverse);
    _mm512_mask_storeu_ps(out + i, lanes, _mm512_mul_ps(scaled, _mm512_maskz_loadu_ps(lanes, weight + i)));
  }
}

void rope(float* x, const float* cos, const float* sin, std::int64_t half, bool interleaved) {
  if (interleaved) return rope_interleaved(x, cos, sin, half);
  for (Index i = 0; i < half; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, half);
    const Rotated r = rotated(_mm512_maskz_loadu_ps(lanes, x + i), _mm512_maskz_loadu_ps(lanes, x + half + i),
                              _mm512_maskz_loadu_ps(lanes, cos + i), _mm512_maskz_loadu_ps(lanes, sin + i));
    _mm512_mask_storeu_ps(x + i, lanes, r.first);
    _mm512_mask_storeu_ps(x + half + i, lanes, r.second);
  }
}

void add(const float* a, float* x, std::int64_t n) {
  for (Index i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    _mm512_mask_storeu_ps(x + i, lanes,
                          _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, x + i), _mm512_maskz_loadu_ps(lanes, a + i)));
  }
}

void scale(float s, float* x, std::int64_t n) {
  map(x, n, [s](__m512 v) { return _mm512_mul_ps(v, splat(s)); });
}

void silu_multiply(const float* gate, const float* up, float* out, std::int64_t n) {
  for (Index i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m512 g = silu(_mm512_maskz_loadu_ps(lanes, gate + i));
    _mm512_mask_storeu_ps(out + i, lanes, _mm512_mul_ps(g, _mm512_maskz_loadu_ps(lanes, up + i)));
  }
}

void softplus(float* x, std::int64_t n) {
  map(x, n, [](__m512 v) { return softplus(v); });
}

void softcap(float cap, float* x, std::int64_t n) {
  map(x, n, [cap](__m512 v) { return _mm512_mul_ps(splat(cap), tanh(_mm512_div_ps(v, splat(cap)))); });
}

void to_float(ElementType type, const std::byte* source, float* out, std::int64_t n) {
  if (type == ElementType::kF32) {
    std::memcpy(out, source, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  for (Index i = 0; i < n; i += kLanes) {
    const __mmask16 lanes = lanes_left(i, n);
    const __m256i halves = _mm256_maskz_loadu_epi16(lanes, source + 2 * i);
    const __m512 v = type == ElementType::kF16 ? _mm512_cvtph_ps(halves)
                                               : from_bits(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
    _mm512_mask_storeu_ps(out + i, lanes, v);
  }
}

void kv_write(ElementType kv_type, std::int64_t head_dim, std::int64_t p, const float* key, const float* value,
              std::byte* key_tile, std::byte* value_tile) {
  if (kv_type == ElementType::kBF16) return write_bf16(head_dim, p, key, value, key_tile, value_tile);
  write_f32(head_dim, p, key, value, key_tile, value_tile);
}

}  // namespace drafthorse::avx512
