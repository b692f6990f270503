#include "kernels/avx512/linear.h"

#include <immintrin.h>

#include "kernels/avx512/linear_bits.h"
#include "kernels/avx512/linear_sums.h"
#include "kernels/avx512/quantized_group.h"
#include "kernels/linear_walk.h"

namespace drafthorse::avx512 {
namespace {

constexpr int kMostRows = 8;

/// The weights of one column of a block as floats, outputs 16 * kHalf .. 16 * kHalf + 15. `w` points at the block.
struct F32Weights {
  static constexpr std::size_t kColumnBytes = 128;
  template <int kHalf, bool kOdd>
  static __m512 load(const std::byte* column) {
    return _mm512_load_ps(column + kHalf * 64);
  }
};

struct F16Weights {
  static constexpr std::size_t kColumnBytes = 64;
  template <int kHalf, bool kOdd>
  static __m512 load(const std::byte* column) {
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(column + kHalf * 32)));
  }
};

/// Two columns share a vector: the even one in the low halves of its lanes.
struct Bf16Weights {
  static constexpr std::size_t kColumnBytes = 64;
  template <int kHalf, bool kOdd>
  static __m512 load(const std::byte* column) {
    const __m512i pairs = _mm512_load_si512(column - (kOdd ? kColumnBytes : 0) + kHalf * 64);
    return _mm512_castsi512_ps(kOdd ? _mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000u)))
                                    : _mm512_slli_epi32(pairs, 16));
  }
};

/// Float weights and float activations: one fused multiply-add per product, columns ascending. Record: 32 floats.
template <typename Weights>
struct FloatKernel {
  static constexpr std::int64_t kMostRows = avx512::kMostRows;
  static constexpr std::size_t kRecordBytes = kGroup * sizeof(float);
  static constexpr std::int64_t kBlockGroups = 1;
  static constexpr std::size_t kBlockBytes = Weights::kColumnBytes * kGroup;

  template <int kRows, bool kFetch>
  static void add(const std::byte* w, const std::byte* x, std::int64_t groups, float* sums) {
    FloatSums<kRows> acc;
    acc.load(sums);
    for (std::int64_t g = 0; g < groups; ++g, x += kRows * kRecordBytes) {
      const std::byte* column = x;
      for (std::int64_t k = 0; k < kGroup; k += 2, column += 8, w += 2 * Weights::kColumnBytes) {
        if constexpr (kFetch) {
          fetch_ahead(w);
          fetch_ahead(w + 64);
          if constexpr (Weights::kColumnBytes == 128) {
            fetch_ahead(w + 128);
            fetch_ahead(w + 192);
          }
        }
        step<kRows, false>(acc, w, column);
        step<kRows, true>(acc, w + Weights::kColumnBytes, column + 4);
      }
    }
    acc.store(sums);
  }

 private:
  template <int kRows, bool kOdd>
  [[gnu::always_inline]] static void step(FloatSums<kRows>& acc, const std::byte* w, const std::byte* x) {
    acc.template multiply_add<kRecordBytes>(Weights::template load<0, kOdd>(w), Weights::template load<1, kOdd>(w), x);
    step_done();
  }
};

/// int8 weights (stored + 128) and int8 activations. Record: 32 int8, then -128 * their sum as int32, then the scale.
/// The integers of eight rows fill half of the registers, so the float sums stay in the first-level cache.
struct Q8Kernel {
  static constexpr std::int64_t kMostRows = avx512::kMostRows;
  static constexpr std::size_t kRecordBytes = kGroup + 8;
  static constexpr std::size_t kScaleBytes = kTileRows * 2;
  static constexpr std::int64_t kBlockGroups = 1;
  static constexpr std::size_t kBlockBytes = kScaleBytes + kTileRows * kGroup;

  template <int kRows, bool kFetch>
  static void add(const std::byte* w, const std::byte* x, std::int64_t groups, float* sums) {
    for (std::int64_t g = 0; g < groups; ++g, w += kBlockBytes, x += kRows * kRecordBytes) {
      IntegerSums<kRows> dot;
      dot.template start<kRecordBytes>(x + kGroup);
      const std::byte* values = w + kScaleBytes;
      if constexpr (kFetch) fetch_ahead(w);
      for (std::int64_t k = 0; k < kGroup; k += 4, values += 128) {
        if constexpr (kFetch) {
          fetch_ahead(values);
          fetch_ahead(values + 64);
        }
        dot.template multiply_add<kRecordBytes>(_mm512_load_si512(values), _mm512_load_si512(values + 64), x + k);
        step_done();
      }
      const auto* scales = reinterpret_cast<const __m256i*>(w);
      dot.template add_scaled_to<kRecordBytes>(sums, _mm512_cvtph_ps(_mm256_load_si256(scales)),
                                               _mm512_cvtph_ps(_mm256_load_si256(scales + 1)), x + kGroup + 4);
      step_done();
    }
  }
};

__m512 with_one_nan(__m512 x) {
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_mask_mov_ps(x, nan, _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(kNanBits))));
}

/// Rounded to bf16, to nearest even, still as float32. NaNs must be with_one_nan's: their bits round to themselves.
__m512 rounded_to_bf16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  return _mm512_castsi512_ps(_mm512_and_si512(rounded, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
}

void pack_float(const float* x, std::int64_t count, std::byte* record) {
  const GroupValues v(x, count);
  _mm512_storeu_ps(record, with_one_nan(v.low));
  _mm512_storeu_ps(record + 64, with_one_nan(v.high));
}

void pack_bf16(const float* x, std::int64_t count, std::byte* record) {
  const GroupValues v(x, count);
  _mm512_storeu_ps(record, rounded_to_bf16(with_one_nan(v.low)));
  _mm512_storeu_ps(record + 64, rounded_to_bf16(with_one_nan(v.high)));
}

void pack_q8(const float* x, std::int64_t count, std::byte* record) {
  const QuantizedGroup group{GroupValues(x, count)};
  const std::int32_t correction = -128 * group.sum();
  group.store(record);
  __builtin_memcpy(record + kGroup, &correction, 4);
  __builtin_memcpy(record + kGroup + 4, &group.scale, 4);
}

}  // namespace

std::size_t packed_rows_bytes(WeightType type, std::int64_t rows, std::int64_t cols) {
  std::size_t record = kGroup * sizeof(float);
  if (is_quantized(type)) record = type == WeightType::kQ8_0 ? Q8Kernel::kRecordBytes : bits_record_bytes(type);
  const auto groups = static_cast<std::size_t>(padded_groups(type, cols));
  return (static_cast<std::size_t>(rows) * groups * record + 63) / 64 * 64;
}

void pack_rows(WeightType type, const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols,
               std::int64_t group_begin, std::int64_t group_end, std::byte* out) {
  constexpr std::size_t kFloatRecord = kGroup * sizeof(float);
  switch (type) {
    case WeightType::kF32:
    case WeightType::kF16:
      return pack_records<kMostRows, kFloatRecord>(x, x_stride, rows, cols, group_begin, group_end, out, pack_float);
    case WeightType::kBF16:
      return pack_records<kMostRows, kFloatRecord>(x, x_stride, rows, cols, group_begin, group_end, out, pack_bf16);
    case WeightType::kQ8_0:
      return pack_records<kMostRows, Q8Kernel::kRecordBytes>(x, x_stride, rows, cols, group_begin, group_end, out,
                                                             pack_q8);
    default:
      return pack_rows_bits(type, x, x_stride, rows, cols, group_begin, group_end, out);
  }
}

void linear(const LinearTask& task) {
  switch (task.type) {
    case WeightType::kF32:
      return Walk<FloatKernel<F32Weights>>(task).run();
    case WeightType::kF16:
      return Walk<FloatKernel<F16Weights>>(task).run();
    case WeightType::kBF16:
      return Walk<FloatKernel<Bf16Weights>>(task).run();
    case WeightType::kQ8_0:
      return Walk<Q8Kernel>(task).run();
    default:
      return linear_bits(task);
  }
}

}  // namespace drafthorse::avx512
