#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/avx2/linear_blocks.h"
#include "kernels/linear_walk.h"
#include "quant/bit_format.h"

/// The kernel of the weight types of 4 to 6 bits for 256-bit vectors. Included by files compiled for different
/// instruction sets, so everything has internal linkage.
namespace drafthorse::avx2 {
namespace {

/// What a record holds after its 32 int8 activations.
///   affine      scale * sum(q) as float32, the scale
///   symmetric   -zero * sum(q) as int32, the scale
///   q6_k        -zero * sum(q) of the first 16 and of the last 16, the scale
template <typename Format>
struct Record {
  static constexpr bool kHalves = Format::kTwoLevel && !Format::kAffine;
  static constexpr std::size_t kSum = kGroup;
  static constexpr std::size_t kScale = kSum + (kHalves ? 8 : 4);
  static constexpr std::size_t kBytes = kScale + 4;

  static void pack(const float* x, std::int64_t count, std::byte* record) {
    const QuantizedGroup group{GroupValues(x, count)};
    std::int32_t halves[2] = {0, 0};  // sums
    for (int i = 0; i < 4; ++i) {
      alignas(32) std::int32_t q[8];
      _mm256_store_si256(reinterpret_cast<__m256i*>(q), group.q[i]);
      for (int k = 0; k < 8; ++k) {
        record[8 * i + k] = static_cast<std::byte>(q[k]);
        halves[i / 2] += q[k];
      }
    }
    if constexpr (kHalves) {
      const std::int32_t sums[] = {-Format::kZero * halves[0], -Format::kZero * halves[1]};
      __builtin_memcpy(record + kSum, sums, 8);
    } else if constexpr (Format::kAffine) {
      float scale;
      __builtin_memcpy(&scale, &group.scale_bits, 4);
      const float total = scale * static_cast<float>(halves[0] + halves[1]);
      __builtin_memcpy(record + kSum, &total, 4);
    } else {
      const std::int32_t sum = -Format::kZero * (halves[0] + halves[1]);
      __builtin_memcpy(record + kSum, &sum, 4);
    }
    __builtin_memcpy(record + kScale, &group.scale_bits, 4);
  }
};

/// Something for 16 outputs.
struct Integers {
  __m256i low;
  __m256i high;
};
struct Floats {
  __m256 low;
  __m256 high;
};

template <int kRows>
[[gnu::always_inline]] inline void clear(IntegerSums<kRows>& sums) {
  if constexpr (kRows > 0) {
    sums.low = sums.high = _mm256_setzero_si256();
    clear(sums.rest);
  }
}

/// Lanes shifted left, or right where kLeft is negative.
template <int kLeft>
[[gnu::always_inline]] inline __m256i shifted(__m256i v) {
  if constexpr (kLeft > 0) return _mm256_slli_epi32(v, kLeft);
  if constexpr (kLeft < 0) return _mm256_srli_epi32(v, -kLeft);
  return v;
}

/// 4 columns of 8 outputs: step kStep of the group at `group`, as unsigned bytes. `eight` counts in vectors.
template <typename Format, int kStep>
[[gnu::always_inline]] inline __m256i step_weights(const std::byte* group, int eight) {
  const auto* pairs = reinterpret_cast<const __m256i*>(group + Format::kLowStart + (kStep / 2) * 128);
  const __m256i low =
      _mm256_and_si256(shifted < kStep % 2 == 0 ? 0 : -4 > (_mm256_load_si256(pairs + eight)), _mm256_set1_epi8(15));
  constexpr int kBits = Format::kHighBits;
  if constexpr (kBits == 0) return low;
  constexpr int kSteps = kBits == 0 ? 1 : 8 / kBits;
  const auto* planes = reinterpret_cast<const __m256i*>(group + Format::kHighStart + (kStep / kSteps) * 128);
  const __m256i high = shifted<4 - kBits*(kStep % kSteps)>(_mm256_load_si256(planes + eight));
  return _mm256_or_si256(low, _mm256_and_si256(high, _mm256_set1_epi8(((1 << kBits) - 1) << 4)));
}

template <typename Format, int kStep>
[[gnu::always_inline]] inline Integers step_weights_16(const std::byte* group, int half) {
  return {step_weights<Format, kStep>(group, 2 * half), step_weights<Format, kStep>(group, 2 * half + 1)};
}

/// Two steps at a time, steps [kStep, kEnd) of all rows; x at row 0's activations.
template <typename Format, typename Product, bool kFetch, int kStep, int kEnd, int kRows>
[[gnu::always_inline]] inline void add_steps(IntegerSums<kRows>& dot, const std::byte* group, int half,
                                             const std::byte* x) {
  if constexpr (kStep < kEnd) {
    if constexpr (kFetch) {
      fetch_ahead(group + Format::kLowStart + kStep * 64 + half * 64);
      if constexpr (kStep / 2 < Format::kHighBits) {
        fetch_ahead(group + Format::kHighStart + kStep * 64 + half * 64);
      }
    }
    Product::template add<Record<Format>::kBytes>(dot, step_weights_16<Format, kStep>(group, half),
                                                  step_weights_16<Format, kStep + 1>(group, half), x + 4 * kStep);
    step_done();
    add_steps<Format, Product, kFetch, kStep + 2, kEnd>(dot, group, half, x);
  }
}

/// 16 f16, 16 unsigned bytes, 16 signed bytes.
[[gnu::always_inline]] inline Floats load_halves(const std::byte* p) {
  const auto* halves = reinterpret_cast<const __m128i*>(p);
  return {_mm256_cvtph_ps(_mm_load_si128(halves)), _mm256_cvtph_ps(_mm_load_si128(halves + 1))};
}
[[gnu::always_inline]] inline Floats load_unsigned(const std::byte* p) {
  const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes)))};
}
[[gnu::always_inline]] inline Integers load_signed(const std::byte* p) {
  const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes))};
}
[[gnu::always_inline]] inline Floats product(Floats a, Floats b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}

template <int kRows>
[[gnu::always_inline]] inline void multiply(IntegerSums<kRows>& dot, Integers factor) {
  if constexpr (kRows > 0) {
    dot.low = _mm256_mullo_epi32(dot.low, factor.low);
    dot.high = _mm256_mullo_epi32(dot.high, factor.high);
    multiply(dot.rest, factor);
  }
}

template <int kRows>
[[gnu::always_inline]] inline void add_integers(IntegerSums<kRows>& dot, const IntegerSums<kRows>& more) {
  if constexpr (kRows > 0) {
    dot.low = _mm256_add_epi32(dot.low, more.low);
    dot.high = _mm256_add_epi32(dot.high, more.high);
    add_integers(dot.rest, more.rest);
  }
}

/// sums = fma(offset, scale * sum of q, fma(dot, weight scale * scale, sums)) for each row; the offset negated if
/// kSubtract. `tail` is the end of row 0's record.
template <std::size_t kStride, bool kSubtract, int kRows>
[[gnu::always_inline]] inline void add_affine_to(float* sums, const IntegerSums<kRows>& dot, Floats scale,
                                                 Floats offset, const std::byte* tail) {
  if constexpr (kRows > 0) {
    const __m256 total = broadcast_float(tail);
    const __m256 x_scale = broadcast_float(tail + 4);
    __m256 low = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot.low), _mm256_mul_ps(scale.low, x_scale), _mm256_load_ps(sums));
    __m256 high =
        _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot.high), _mm256_mul_ps(scale.high, x_scale), _mm256_load_ps(sums + 8));
    low = kSubtract ? _mm256_fnmadd_ps(offset.low, total, low) : _mm256_fmadd_ps(offset.low, total, low);
    high = kSubtract ? _mm256_fnmadd_ps(offset.high, total, high) : _mm256_fmadd_ps(offset.high, total, high);
    _mm256_store_ps(sums, low);
    _mm256_store_ps(sums + 8, high);
    add_affine_to<kStride, kSubtract>(sums + 32, dot.rest, scale, offset, tail + kStride);
  }
}

/// Unsigned weights of 4 to 6 bits and int8 activations. `Product` has
///   template <std::size_t kStride, int kRows> static void add(IntegerSums<kRows>&, Integers a, Integers b,
///   const std::byte* x): adds the products of 4 weights a lane in a with the 4 activations of row r at x + r *
///   kStride, and of those in b with the next 4.
template <typename Format, typename Product>
struct BitKernel {
  static constexpr std::int64_t kMostRows = 4;
  static constexpr std::size_t kRecordBytes = Record<Format>::kBytes;
  static constexpr std::int64_t kBlockGroups = Format::kBlockGroups;
  static constexpr std::size_t kBlockBytes = Format::kBlockBytes;

  template <int kRows, bool kFetch>
  static void add(const std::byte* w, const std::byte* x, std::int64_t groups, float* sums) {
    for (std::int64_t g = 0; g < groups; g += kBlockGroups, w += kBlockBytes) {
      if constexpr (kFetch) {
        fetch_ahead(w);
        if constexpr (Format::kAffine) fetch_ahead(w + 64);
      }
      const std::byte* group = w + Format::kHeaderBytes;
      for (std::int64_t i = 0; i < kBlockGroups; ++i, group += Format::kGroupBytes, x += kRows * kRecordBytes) {
        if constexpr (kFetch && Format::kTwoLevel) fetch_ahead(group);
        add_half<kRows, kFetch, 0>(w, group, x, sums);
        add_half<kRows, kFetch, 1>(w, group, x, sums + 16);
      }
    }
  }

 private:
  /// Outputs 16 * kHalf and up. Its lines of the weights are the ones it fetches.
  template <int kRows, bool kFetch, int kHalf>
  [[gnu::always_inline]] static void add_half(const std::byte* header, const std::byte* group, const std::byte* x,
                                              float* sums) {
    const std::byte* factors = group + kHalf * 16;  // of two-level types; the second ones are 32 bytes on
    IntegerSums<kRows> dot;
    if constexpr (Record<Format>::kHalves) {
      dot.template start<kRecordBytes>(x + kGroup);
      add_steps<Format, Product, kFetch, 0, 4>(dot, group, kHalf, x);
      multiply(dot, load_signed(factors));
      IntegerSums<kRows> second;
      second.template start<kRecordBytes>(x + kGroup + 4);
      add_steps<Format, Product, kFetch, 4, 8>(second, group, kHalf, x);
      multiply(second, load_signed(factors + 32));
      add_integers(dot, second);
    } else {
      if constexpr (Format::kAffine) {
        clear(dot);
      } else {
        dot.template start<kRecordBytes>(x + kGroup);
      }
      add_steps<Format, Product, kFetch, 0, 8>(dot, group, kHalf, x);
    }
    Floats scale = load_halves(header + kHalf * 32);
    if constexpr (Format::kAffine) {
      Floats offset = load_halves(header + Format::kOffsetStart + kHalf * 32);
      if constexpr (Format::kTwoLevel) {
        scale = product(scale, load_unsigned(factors));
        offset = product(offset, load_unsigned(factors + 32));
      }
      add_affine_to<kRecordBytes, Format::kTwoLevel>(sums, dot, scale, offset, x + kGroup);
    } else {
      dot.template add_scaled_to<kRecordBytes>(sums, scale.low, scale.high, x + Record<Format>::kScale);
    }
    step_done();
  }
};

}  // namespace
}  // namespace drafthorse::avx2
