#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

/// Sums of a block of rows in registers. One lane is one output, two vectors (32 outputs) a row. Each row's vectors are
/// named members and the other rows follow as a nested struct: GCC 12 leaves arrays of vectors in memory, members it
/// keeps in registers. Included by files compiled for different instruction sets, so everything has internal linkage.
namespace drafthorse::avx512 {
namespace {

[[gnu::always_inline]] inline __m512i broadcast_int(const std::byte* p) {
  std::int32_t value;
  __builtin_memcpy(&value, p, 4);
  return _mm512_set1_epi32(value);
}
[[gnu::always_inline]] inline __m512 broadcast_float(const std::byte* p) {
  return _mm512_castsi512_ps(broadcast_int(p));
}

template <int kRows>
struct IntegerSums {
  __m512i low;
  __m512i high;
  IntegerSums<kRows - 1> rest;

  /// Row r starts at the int32 at p + r * kStride.
  template <std::size_t kStride>
  [[gnu::always_inline]] void start(const std::byte* p) {
    low = broadcast_int(p);
    high = low;
    rest.template start<kStride>(p + kStride);
  }
  /// Adds the products of 4 unsigned weights a lane with the 4 signed activations at x + r * kStride.
  template <std::size_t kStride>
  [[gnu::always_inline]] void multiply_add(__m512i w_low, __m512i w_high, const std::byte* x) {
    const __m512i v = broadcast_int(x);
    low = _mm512_dpbusd_epi32(low, w_low, v);
    high = _mm512_dpbusd_epi32(high, w_high, v);
    rest.template multiply_add<kStride>(w_low, w_high, x + kStride);
  }
  /// Adds these integers, times (weight scale * activation scale), to float sums; row r's scale at x_scale + r *
  /// kStride.
  template <std::size_t kStride>
  [[gnu::always_inline]] void add_scaled_to(float* sums, __m512 w_low, __m512 w_high, const std::byte* x_scale) const {
    const __m512 v = broadcast_float(x_scale);
    _mm512_store_ps(sums, _mm512_fmadd_ps(_mm512_cvtepi32_ps(low), _mm512_mul_ps(w_low, v), _mm512_load_ps(sums)));
    _mm512_store_ps(sums + 16,
                    _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), _mm512_mul_ps(w_high, v), _mm512_load_ps(sums + 16)));
    rest.template add_scaled_to<kStride>(sums + 32, w_low, w_high, x_scale + kStride);
  }
};

template <>
struct IntegerSums<0> {
  template <std::size_t>
  [[gnu::always_inline]] void add_scaled_to(float*, __m512, __m512, const std::byte*) const {}
  template <std::size_t>
  [[gnu::always_inline]] void start(const std::byte*) {}
  template <std::size_t>
  [[gnu::always_inline]] void multiply_add(__m512i, __m512i, const std::byte*) {}
};

template <int kRows>
struct FloatSums {
  __m512 low;
  __m512 high;
  FloatSums<kRows - 1> rest;

  [[gnu::always_inline]] void load(const float* sums) {
    low = _mm512_load_ps(sums);
    high = _mm512_load_ps(sums + 16);
    rest.load(sums + 32);
  }
  [[gnu::always_inline]] void store(float* sums) const {
    _mm512_store_ps(sums, low);
    _mm512_store_ps(sums + 16, high);
    rest.store(sums + 32);
  }
  /// Adds weights times the activation at x + r * kStride.
  template <std::size_t kStride>
  [[gnu::always_inline]] void multiply_add(__m512 w_low, __m512 w_high, const std::byte* x) {
    const __m512 v = broadcast_float(x);
    low = _mm512_fmadd_ps(w_low, v, low);
    high = _mm512_fmadd_ps(w_high, v, high);
    rest.template multiply_add<kStride>(w_low, w_high, x + kStride);
  }
};

template <>
struct FloatSums<0> {
  [[gnu::always_inline]] void load(const float*) {}
  [[gnu::always_inline]] void store(float*) const {}
  template <std::size_t>
  [[gnu::always_inline]] void multiply_add(__m512, __m512, const std::byte*) {}
};

}  // namespace
}  // namespace drafthorse::avx512
