#include <immintrin.h>

#include "kernels/avx512/linear.h"
#include "kernels/avx512/linear_sums.h"
#include "kernels/linear_walk.h"

namespace drafthorse::avx512 {
namespace {

/// Adds the products of 2 weights a lane with the 2 activations of row r at x + r * kStride.
template <std::size_t kStride, int kRows>
[[gnu::always_inline]] inline void multiply_add_pairs(FloatSums<kRows>& sums, __m512bh w_low, __m512bh w_high,
                                                      const std::byte* x) {
  if constexpr (kRows > 0) {
    const __m512bh v = (__m512bh)broadcast_int(x);
    sums.low = _mm512_dpbf16_ps(sums.low, w_low, v);
    sums.high = _mm512_dpbf16_ps(sums.high, w_high, v);
    multiply_add_pairs<kStride>(sums.rest, w_low, w_high, x + kStride);
  }
}

/// Record: 32 bf16.
struct PairKernel {
  static constexpr std::int64_t kMostRows = 8;
  static constexpr std::size_t kRecordBytes = kGroup * 2;
  static constexpr std::int64_t kBlockGroups = 1;
  static constexpr std::size_t kBlockBytes = kTileRows * kGroup * 2;

  template <int kRows, bool kFetch>
  static void add(const std::byte* w, const std::byte* x, std::int64_t groups, float* sums) {
    FloatSums<kRows> acc;
    acc.load(sums);
    for (std::int64_t g = 0; g < groups; ++g, x += kRows * kRecordBytes) {
      for (std::int64_t k = 0; k < kGroup; k += 2, w += 128) {
        if constexpr (kFetch) {
          fetch_ahead(w);
          fetch_ahead(w + 64);
        }
        multiply_add_pairs<kRecordBytes>(acc, (__m512bh)_mm512_load_si512(w), (__m512bh)_mm512_load_si512(w + 64),
                                         x + k * 2);
        step_done();
      }
    }
    acc.store(sums);
  }
};

void pack_pairs(const float* x, std::int64_t count, std::byte* record) {
  const std::uint32_t mask = count >= kGroup ? 0xffffffffu : (1u << count) - 1;
  const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x);
  const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), x + 16);
  const __mmask32 nan = static_cast<__mmask32>(_mm512_cmp_ps_mask(low, low, _CMP_UNORD_Q)) |
                        static_cast<__mmask32>(_mm512_cmp_ps_mask(high, high, _CMP_UNORD_Q)) << 16;
  const auto rounded = (__m512i)_mm512_cvtne2ps_pbh(high, low);
  _mm512_storeu_si512(record,
                      _mm512_mask_mov_epi16(rounded, nan, _mm512_set1_epi16(static_cast<short>(kNanBits >> 16))));
}

}  // namespace

void pack_rows_bf16(WeightType type, const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols,
                    std::int64_t group_begin, std::int64_t group_end, std::byte* out) {
  if (type != WeightType::kBF16) return pack_rows(type, x, x_stride, rows, cols, group_begin, group_end, out);
  pack_records<PairKernel::kMostRows, PairKernel::kRecordBytes>(x, x_stride, rows, cols, group_begin, group_end, out,
                                                                pack_pairs);
}

void linear_bf16(const LinearTask& task) {
  if (task.type != WeightType::kBF16) return linear(task);
  Walk<PairKernel>(task).run();
}

}  // namespace drafthorse::avx512
