#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/linear_walk.h"

/// Sums of a block of rows and half a tile in registers: one lane is one output, two vectors (16 outputs) a row. Each
/// row's vectors are named members and the other rows follow as a nested struct: GCC 12 leaves arrays of vectors in
/// memory, members it keeps in registers. Included by files compiled for different instruction sets, so everything has
/// internal linkage.
namespace drafthorse::avx2 {
namespace {

[[gnu::always_inline]] inline __m256i broadcast_int(const std::byte* p) {
  std::int32_t value;
  __builtin_memcpy(&value, p, 4);
  return _mm256_set1_epi32(value);
}
[[gnu::always_inline]] inline __m256 broadcast_float(const std::byte* p) {
  return _mm256_castsi256_ps(broadcast_int(p));
}

template <int kRows>
struct FloatSums {
  __m256 low;
  __m256 high;
  FloatSums<kRows - 1> rest;

  [[gnu::always_inline]] void load(const float* sums) {
    low = _mm256_load_ps(sums);
    high = _mm256_load_ps(sums + 8);
    rest.load(sums + 32);
  }
  [[gnu::always_inline]] void store(float* sums) const {
    _mm256_store_ps(sums, low);
    _mm256_store_ps(sums + 8, high);
    rest.store(sums + 32);
  }
  /// Adds weights times the activation at x + r * kStride.
  template <std::size_t kStride>
  [[gnu::always_inline]] void multiply_add(__m256 w_low, __m256 w_high, const std::byte* x) {
    const __m256 v = broadcast_float(x);
    low = _mm256_fmadd_ps(w_low, v, low);
    high = _mm256_fmadd_ps(w_high, v, high);
    rest.template multiply_add<kStride>(w_low, w_high, x + kStride);
  }
};

template <>
struct FloatSums<0> {
  [[gnu::always_inline]] void load(const float*) {}
  [[gnu::always_inline]] void store(float*) const {}
  template <std::size_t>
  [[gnu::always_inline]] void multiply_add(__m256, __m256, const std::byte*) {}
};

template <int kRows>
struct IntegerSums {
  __m256i low;
  __m256i high;
  IntegerSums<kRows - 1> rest;

  /// Row r starts at the int32 at p + r * kStride.
  template <std::size_t kStride>
  [[gnu::always_inline]] void start(const std::byte* p) {
    low = broadcast_int(p);
    high = low;
    rest.template start<kStride>(p + kStride);
  }
  /// Adds these integers, times (weight scale * activation scale), to float sums; row r's scale at x_scale + r *
  /// kStride.
  template <std::size_t kStride>
  [[gnu::always_inline]] void add_scaled_to(float* sums, __m256 w_low, __m256 w_high, const std::byte* x_scale) const {
    const __m256 v = broadcast_float(x_scale);
    _mm256_store_ps(sums, _mm256_fmadd_ps(_mm256_cvtepi32_ps(low), _mm256_mul_ps(w_low, v), _mm256_load_ps(sums)));
    _mm256_store_ps(sums + 8,
                    _mm256_fmadd_ps(_mm256_cvtepi32_ps(high), _mm256_mul_ps(w_high, v), _mm256_load_ps(sums + 8)));
    rest.template add_scaled_to<kStride>(sums + 32, w_low, w_high, x_scale + kStride);
  }
};

template <>
struct IntegerSums<0> {
  template <std::size_t>
  [[gnu::always_inline]] void start(const std::byte*) {}
  template <std::size_t>
  [[gnu::always_inline]] void add_scaled_to(float*, __m256, __m256, const std::byte*) const {}
};

constexpr std::size_t kQ8ScaleBytes = 64;
/// Bytes a q8_0 record adds to its values: -128 * their sum as int32, then the scale.
constexpr std::size_t kQ8RecordTail = 8;

/// int8 weights (stored + 128) and activations of `Product`, which has
///   kValueBytes  bytes a record gives to its 32 values
///   template <std::size_t kStride, int kRows> static void add(IntegerSums<kRows>&, __m256i w_low, __m256i w_high,
///   const std::byte* x): adds the products of 4 weights a lane with the 4 activations of row r that start at x + r *
///   kStride.
template <typename Product>
struct Q8Kernel {
  static constexpr std::int64_t kMostRows = 4;
  static constexpr std::size_t kRecordBytes = Product::kValueBytes + kQ8RecordTail;
  static constexpr std::int64_t kBlockGroups = 1;
  static constexpr std::size_t kBlockBytes = kQ8ScaleBytes + kTileRows * kGroup;

  template <int kRows, bool kFetch>
  static void add(const std::byte* w, const std::byte* x, std::int64_t groups, float* sums) {
    for (std::int64_t g = 0; g < groups; ++g, w += kBlockBytes, x += kRows * kRecordBytes) {
      if constexpr (kFetch) fetch_ahead(w);
      add_half<kRows, kFetch>(w, w + kQ8ScaleBytes, x, sums);
      add_half<kRows, kFetch>(w + kQ8ScaleBytes / 2, w + kQ8ScaleBytes + 64, x, sums + 16);
    }
  }

 private:
  template <int kRows, bool kFetch>
  [[gnu::always_inline]] static void add_half(const std::byte* scales, const std::byte* values, const std::byte* x,
                                              float* sums) {
    IntegerSums<kRows> dot;
    dot.template start<kRecordBytes>(x + Product::kValueBytes);
    constexpr std::size_t kStep = Product::kValueBytes / (kGroup / 4);
    const std::byte* x_values = x;
    for (std::int64_t k = 0; k < kGroup; k += 4, values += 128, x_values += kStep) {
      if constexpr (kFetch) fetch_ahead(values);
      const auto* vectors = reinterpret_cast<const __m256i*>(values);
      Product::template add<kRecordBytes>(dot, _mm256_load_si256(vectors), _mm256_load_si256(vectors + 1), x_values);
      step_done();
    }
    const auto* halves = reinterpret_cast<const __m128i*>(scales);
    dot.template add_scaled_to<kRecordBytes>(sums, _mm256_cvtph_ps(_mm_load_si128(halves)),
                                             _mm256_cvtph_ps(_mm_load_si128(halves + 1)), x + Product::kValueBytes + 4);
    step_done();
  }
};

/// 32 values, zeros past `count`.
struct GroupValues {
  alignas(32) float values[kGroup];

  GroupValues(const float* x, std::int64_t count) {
    if (count >= kGroup) {
      for (std::int64_t k = 0; k < kGroup; ++k) values[k] = x[k];
    } else {
      for (std::int64_t k = 0; k < kGroup; ++k) values[k] = k < count ? x[k] : 0.0f;
    }
  }
  __m256 vector(int i) const { return _mm256_load_ps(values + 8 * i); }
};

/// A group of activations as 8-bit integers, one int32 each.
struct QuantizedGroup {
  __m256i q[4];
  std::int32_t correction;  ///< -128 * the sum of q
  std::uint32_t scale_bits;

  explicit QuantizedGroup(const GroupValues& x) : correction(0), scale_bits(0) {
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256i largest = _mm256_setzero_si256();
    for (int i = 0; i < 4; ++i) {
      q[i] = _mm256_setzero_si256();
      largest = _mm256_max_epi32(largest, _mm256_and_si256(_mm256_castps_si256(x.vector(i)), magnitude));
    }
    const auto amax_bits =
        static_cast<std::uint32_t>(across(largest, [](__m128i a, __m128i b) { return _mm_max_epi32(a, b); }));
    float amax;
    __builtin_memcpy(&amax, &amax_bits, 4);
    if (amax_bits >= kInfinityBits) {
      scale_bits = kNanBits;
    } else if (amax >= kSmallestAmax) {
      const float scale = amax / 127.0f;
      __builtin_memcpy(&scale_bits, &scale, 4);
      const __m256 inverse = _mm256_set1_ps(127.0f / amax);
      __m256i sum = _mm256_setzero_si256();
      for (int i = 0; i < 4; ++i) {
        q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(x.vector(i), inverse));
        sum = _mm256_add_epi32(sum, q[i]);
      }
      correction = -128 * across(sum, [](__m128i a, __m128i b) { return _mm_add_epi32(a, b); });
    }
  }

 private:
  template <typename Operation>
  static std::int32_t across(__m256i v, Operation operation) {
    __m128i a = operation(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    a = operation(a, _mm_shuffle_epi32(a, 0x4e));
    a = operation(a, _mm_shuffle_epi32(a, 0xb1));
    return _mm_cvtsi128_si32(a);
  }
};

/// Writes what follows the values of a q8_0 record.
inline void pack_q8_tail(const QuantizedGroup& group, std::byte* tail) {
  __builtin_memcpy(tail, &group.correction, 4);
  __builtin_memcpy(tail + 4, &group.scale_bits, 4);
}

}  // namespace
}  // namespace drafthorse::avx2
