#include "kernels/avx2/linear.h"

#include <immintrin.h>

#include "kernels/avx2/linear_bits.h"
#include "kernels/avx2/linear_blocks.h"
#include "kernels/linear_walk.h"

namespace drafthorse::avx2 {
namespace {

constexpr int kMostRows = 4;

/// The weights of one column of a block as floats, eight outputs from 8 * kEighth. `column` points at the column.
struct F32Weights {
  static constexpr std::size_t kColumnBytes = 128;
  template <bool kOdd>
  static __m256 load(const std::byte* column, int eight) {
    return _mm256_load_ps(reinterpret_cast<const float*>(column) + eight * 8);
  }
};

struct F16Weights {
  static constexpr std::size_t kColumnBytes = 64;
  template <bool kOdd>
  static __m256 load(const std::byte* column, int eight) {
    return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(column) + eight));
  }
};

/// Two columns share a vector: the even one in the low halves of its lanes.
struct Bf16Weights {
  static constexpr std::size_t kColumnBytes = 64;
  template <bool kOdd>
  static __m256 load(const std::byte* column, int eight) {
    const auto* vectors = reinterpret_cast<const __m256i*>(column - (kOdd ? kColumnBytes : 0));
    const __m256i pairs = _mm256_load_si256(vectors + eight);
    return _mm256_castsi256_ps(kOdd ? _mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xffff0000u)))
                                    : _mm256_slli_epi32(pairs, 16));
  }
};

/// Float weights and float activations: one fused multiply-add per product, columns ascending. Record: 32 floats.
template <typename Weights>
struct FloatKernel {
  static constexpr std::int64_t kMostRows = avx2::kMostRows;
  static constexpr std::size_t kRecordBytes = kGroup * sizeof(float);
  static constexpr std::int64_t kBlockGroups = 1;
  static constexpr std::size_t kBlockBytes = Weights::kColumnBytes * kGroup;

  template <int kRows, bool kFetch>
  static void add(const std::byte* w, const std::byte* x, std::int64_t groups, float* sums) {
    for (std::int64_t g = 0; g < groups; ++g, w += kBlockBytes, x += kRows * kRecordBytes) {
      add_half<kRows, 0, kFetch>(w, x, sums);
      add_half<kRows, 1, kFetch && Weights::kColumnBytes == 128>(w, x, sums + 16);
    }
  }

 private:
  template <int kRows, int kHalf, bool kFetch>
  [[gnu::always_inline]] static void add_half(const std::byte* w, const std::byte* x, float* sums) {
    FloatSums<kRows> acc;
    acc.load(sums);
    for (std::int64_t k = 0; k < kGroup; k += 2, x += 8, w += 2 * Weights::kColumnBytes) {
      if constexpr (kFetch) {
        fetch_ahead(w + kHalf * 64);
        fetch_ahead(w + kHalf * 64 + Weights::kColumnBytes);
      }
      step<kRows, kHalf, false>(acc, w, x);
      step<kRows, kHalf, true>(acc, w + Weights::kColumnBytes, x + 4);
    }
    acc.store(sums);
  }

  template <int kRows, int kHalf, bool kOdd>
  [[gnu::always_inline]] static void step(FloatSums<kRows>& acc, const std::byte* w, const std::byte* x) {
    acc.template multiply_add<kRecordBytes>(Weights::template load<kOdd>(w, 2 * kHalf),
                                            Weights::template load<kOdd>(w, 2 * kHalf + 1), x);
    step_done();
  }
};

/// 8-bit products through 16 bits: vpmaddubsw would saturate on 255 * 127 * 2. Of each 4 activations the record holds
/// the pairs (0, 2) and (1, 3) as int16, to meet the even and the odd bytes of the weights.
struct WidenedProduct {
  static constexpr std::size_t kValueBytes = kGroup * 2;

  template <std::size_t kStride, int kRows>
  [[gnu::always_inline]] static void add(IntegerSums<kRows>& dot, __m256i w_low, __m256i w_high, const std::byte* x) {
    const __m256i even_bytes = _mm256_set1_epi16(0xff);
    add_rows<kStride>(dot, _mm256_and_si256(w_low, even_bytes), _mm256_and_si256(w_high, even_bytes), x);
    add_rows<kStride>(dot, _mm256_srli_epi16(w_low, 8), _mm256_srli_epi16(w_high, 8), x + 4);
  }

 private:
  template <std::size_t kStride, int kRows>
  [[gnu::always_inline]] static void add_rows(IntegerSums<kRows>& dot, __m256i w_low, __m256i w_high,
                                              const std::byte* x) {
    if constexpr (kRows > 0) {
      const __m256i v = broadcast_int(x);
      dot.low = _mm256_add_epi32(dot.low, _mm256_madd_epi16(w_low, v));
      dot.high = _mm256_add_epi32(dot.high, _mm256_madd_epi16(w_high, v));
      add_rows<kStride>(dot.rest, w_low, w_high, x + kStride);
    }
  }
};

__m256 with_one_nan(__m256 x) {
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(kNanBits)));
  return _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

/// Rounded to bf16, to nearest even, still as float32. NaNs must be with_one_nan's: their bits round to themselves.
__m256 rounded_to_bf16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  return _mm256_castsi256_ps(_mm256_and_si256(rounded, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
}

void pack_float(const float* x, std::int64_t count, std::byte* record) {
  const GroupValues group(x, count);
  auto* out = reinterpret_cast<float*>(record);
  for (int i = 0; i < 4; ++i) _mm256_storeu_ps(out + 8 * i, with_one_nan(group.vector(i)));
}

void pack_bf16(const float* x, std::int64_t count, std::byte* record) {
  const GroupValues group(x, count);
  auto* out = reinterpret_cast<float*>(record);
  for (int i = 0; i < 4; ++i) _mm256_storeu_ps(out + 8 * i, rounded_to_bf16(with_one_nan(group.vector(i))));
}

void pack_q8(const float* x, std::int64_t count, std::byte* record) {
  const QuantizedGroup group{GroupValues(x, count)};
  for (int i = 0; i < 4; ++i) {
    alignas(32) std::int32_t q[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(q), group.q[i]);
    auto* out = reinterpret_cast<std::int16_t*>(record) + 8 * i;
    for (int k = 0; k < 8; k += 4) {
      out[k] = static_cast<std::int16_t>(q[k]);
      out[k + 1] = static_cast<std::int16_t>(q[k + 2]);
      out[k + 2] = static_cast<std::int16_t>(q[k + 1]);
      out[k + 3] = static_cast<std::int16_t>(q[k + 3]);
    }
  }
  pack_q8_tail(group, record + WidenedProduct::kValueBytes);
}

using WidenedKernel = Q8Kernel<WidenedProduct>;

}  // namespace

std::size_t packed_rows_bytes(WeightType type, std::int64_t rows, std::int64_t cols) {
  std::size_t record = kGroup * sizeof(float);
  if (is_quantized(type)) record = type == WeightType::kQ8_0 ? WidenedKernel::kRecordBytes : bits_record_bytes(type);
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
      return pack_records<kMostRows, WidenedKernel::kRecordBytes>(x, x_stride, rows, cols, group_begin, group_end, out,
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
      return Walk<WidenedKernel>(task).run();
    default:
      return linear_bits(task);
  }
}

}  // namespace drafthorse::avx2
