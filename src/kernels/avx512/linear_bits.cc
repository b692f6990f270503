#include "kernels/avx512/linear_bits.h"

#include <immintrin.h>

#include "kernels/avx512/linear_sums.h"
#include "kernels/avx512/quantized_group.h"
#include "kernels/linear_walk.h"
#include "quant/bit_format.h"

namespace drafthorse::avx512 {
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
    group.store(record);
    if constexpr (kHalves) {
      const std::int32_t sums[] = {-Format::kZero * group.low_sum(), -Format::kZero * group.high_sum()};
      __builtin_memcpy(record + kSum, sums, 8);
    } else if constexpr (Format::kAffine) {
      const float total = group.scale * static_cast<float>(group.sum());
      __builtin_memcpy(record + kSum, &total, 4);
    } else {
      const std::int32_t sum = -Format::kZero * group.sum();
      __builtin_memcpy(record + kSum, &sum, 4);
    }
    __builtin_memcpy(record + kScale, &group.scale, 4);
  }
};

template <int kRows>
[[gnu::always_inline]] inline void clear(IntegerSums<kRows>& sums) {
  if constexpr (kRows > 0) {
    sums.low = sums.high = _mm512_setzero_si512();
    clear(sums.rest);
  }
}

/// Lanes shifted left, or right where kLeft is negative.
template <int kLeft>
[[gnu::always_inline]] inline __m512i shifted(__m512i v) {
  if constexpr (kLeft > 0) return _mm512_slli_epi32(v, kLeft);
  if constexpr (kLeft < 0) return _mm512_srli_epi32(v, -kLeft);
  return v;
}

/// 4 columns of 16 outputs: step kStep of the group at `group`, outputs 16 * kHalf and up, as unsigned bytes.
template <typename Format, int kStep, int kHalf>
[[gnu::always_inline]] inline __m512i step_weights(const std::byte* group) {
  const __m512i pair = _mm512_load_si512(group + Format::kLowStart + (kStep / 2) * 128 + kHalf * 64);
  const __m512i low = _mm512_and_si512(shifted < kStep % 2 == 0 ? 0 : -4 > (pair), _mm512_set1_epi8(15));
  constexpr int kBits = Format::kHighBits;
  if constexpr (kBits == 0) return low;
  constexpr int kSteps = kBits == 0 ? 1 : 8 / kBits;
  const __m512i plane = _mm512_load_si512(group + Format::kHighStart + (kStep / kSteps) * 128 + kHalf * 64);
  const __m512i high = shifted<4 - kBits*(kStep % kSteps)>(plane);
  constexpr int kOrOfAnd = 0xf8;  // a | (b & c)
  return _mm512_ternarylogic_epi32(low, high, _mm512_set1_epi8(((1 << kBits) - 1) << 4), kOrOfAnd);
}

/// Steps [kStep, kEnd) of all rows; x at the row's 4 activations of step 0.
template <typename Format, bool kFetch, int kStep, int kEnd, int kRows>
[[gnu::always_inline]] inline void add_steps(IntegerSums<kRows>& dot, const std::byte* group, const std::byte* x) {
  if constexpr (kStep < kEnd) {
    if constexpr (kFetch) {
      if constexpr (kStep % 2 == 0) {
        fetch_ahead(group + Format::kLowStart + kStep * 64);
        fetch_ahead(group + Format::kLowStart + kStep * 64 + 64);
      } else if constexpr (kStep / 2 * 128 < Format::kHighBits * 128) {
        fetch_ahead(group + Format::kHighStart + kStep / 2 * 128);
        fetch_ahead(group + Format::kHighStart + kStep / 2 * 128 + 64);
      }
    }
    dot.template multiply_add<Record<Format>::kBytes>(step_weights<Format, kStep, 0>(group),
                                                      step_weights<Format, kStep, 1>(group), x + 4 * kStep);
    step_done();
    add_steps<Format, kFetch, kStep + 1, kEnd>(dot, group, x);
  }
}

/// 16 f16 as floats.
[[gnu::always_inline]] inline __m512 load_halves(const std::byte* p) {
  return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
}
/// 16 bytes as floats.
[[gnu::always_inline]] inline __m512 load_unsigned(const std::byte* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(p))));
}
[[gnu::always_inline]] inline __m512i load_signed(const std::byte* p) {
  return _mm512_cvtepi8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
}

struct Floats {
  __m512 low;
  __m512 high;
};

/// sums = fma(offset, scale * sum of q, fma(dot, weight scale * scale, sums)) for each row; the offset negated if
/// kSubtract. `tail` is the end of row 0's record.
template <std::size_t kStride, bool kSubtract, int kRows>
[[gnu::always_inline]] inline void add_affine_to(float* sums, const IntegerSums<kRows>& dot, Floats scale,
                                                 Floats offset, const std::byte* tail) {
  if constexpr (kRows > 0) {
    const __m512 total = broadcast_float(tail);
    const __m512 x_scale = broadcast_float(tail + 4);
    __m512 low = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot.low), _mm512_mul_ps(scale.low, x_scale), _mm512_load_ps(sums));
    __m512 high =
        _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot.high), _mm512_mul_ps(scale.high, x_scale), _mm512_load_ps(sums + 16));
    low = kSubtract ? _mm512_fnmadd_ps(offset.low, total, low) : _mm512_fmadd_ps(offset.low, total, low);
    high = kSubtract ? _mm512_fnmadd_ps(offset.high, total, high) : _mm512_fmadd_ps(offset.high, total, high);
    _mm512_store_ps(sums, low);
    _mm512_store_ps(sums + 16, high);
    add_affine_to<kStride, kSubtract>(sums + 32, dot.rest, scale, offset, tail + kStride);
  }
}

/// Multiplies by the integer scales at `factors`.
template <int kRows>
[[gnu::always_inline]] inline void multiply(IntegerSums<kRows>& dot, __m512i low, __m512i high) {
  if constexpr (kRows > 0) {
    dot.low = _mm512_mullo_epi32(dot.low, low);
    dot.high = _mm512_mullo_epi32(dot.high, high);
    multiply(dot.rest, low, high);
  }
}

template <int kRows>
[[gnu::always_inline]] inline void add(IntegerSums<kRows>& dot, const IntegerSums<kRows>& more) {
  if constexpr (kRows > 0) {
    dot.low = _mm512_add_epi32(dot.low, more.low);
    dot.high = _mm512_add_epi32(dot.high, more.high);
    add(dot.rest, more.rest);
  }
}

/// Unsigned weights of 4 to 6 bits and int8 activations. Float sums stay in the first-level cache, as in q8_0.
template <typename Format>
struct BitKernel {
  static constexpr std::int64_t kMostRows = 8;
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
        add_group<kRows, kFetch>(w, group, x, sums);
        step_done();
      }
    }
  }

 private:
  template <int kRows, bool kFetch>
  [[gnu::always_inline]] static void add_group(const std::byte* header, const std::byte* group, const std::byte* x,
                                               float* sums) {
    IntegerSums<kRows> dot;
    if constexpr (Record<Format>::kHalves) {
      dot.template start<kRecordBytes>(x + kGroup);
      add_steps<Format, kFetch, 0, 4>(dot, group, x);
      multiply(dot, load_signed(group), load_signed(group + 16));
      IntegerSums<kRows> second;
      second.template start<kRecordBytes>(x + kGroup + 4);
      add_steps<Format, kFetch, 4, 8>(second, group, x);
      multiply(second, load_signed(group + 32), load_signed(group + 48));
      avx512::add(dot, second);
    } else {
      if constexpr (Format::kAffine) {
        clear(dot);
      } else {
        dot.template start<kRecordBytes>(x + kGroup);
      }
      add_steps<Format, kFetch, 0, 8>(dot, group, x);
    }
    Floats scale{load_halves(header), load_halves(header + 32)};
    if constexpr (Format::kAffine) {
      const std::byte* offsets = header + Format::kOffsetStart;
      Floats offset{load_halves(offsets), load_halves(offsets + 32)};
      if constexpr (Format::kTwoLevel) {
        scale.low = _mm512_mul_ps(scale.low, load_unsigned(group));
        scale.high = _mm512_mul_ps(scale.high, load_unsigned(group + 16));
        offset.low = _mm512_mul_ps(offset.low, load_unsigned(group + 32));
        offset.high = _mm512_mul_ps(offset.high, load_unsigned(group + 48));
      }
      add_affine_to<kRecordBytes, Format::kTwoLevel>(sums, dot, scale, offset, x + kGroup);
    } else {
      dot.template add_scaled_to<kRecordBytes>(sums, scale.low, scale.high, x + Record<Format>::kScale);
    }
  }
};

}  // namespace

std::size_t bits_record_bytes(WeightType type) {
  std::size_t bytes = 0;
  with_bit_format(type, [&]<typename Format>(Format) { bytes = Record<Format>::kBytes; });
  return bytes;
}

void pack_rows_bits(WeightType type, const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols,
                    std::int64_t group_begin, std::int64_t group_end, std::byte* out) {
  with_bit_format(type, [&]<typename Format>(Format) {
    using Kernel = BitKernel<Format>;
    pack_records<Kernel::kMostRows, Kernel::kRecordBytes, Kernel::kBlockGroups>(x, x_stride, rows, cols, group_begin,
                                                                                group_end, out, Record<Format>::pack);
  });
}

void linear_bits(const LinearTask& task) {
  with_bit_format(task.type, [&]<typename Format>(Format) { Walk<BitKernel<Format>>(task).run(); });
}

}  // namespace drafthorse::avx512
