#include "kernels/avx2/linear_bits.h"

#include "kernels/avx2/linear_bits_kernel.h"

namespace drafthorse::avx2 {
namespace {

/// Products of bytes through 16 bits, four to a sum: 4 * 63 * 127 = 32004 is the most there can be, below saturation.
struct SixteenBitProduct {
  template <std::size_t kStride, int kRows>
  [[gnu::always_inline]] static void add(IntegerSums<kRows>& dot, Integers a, Integers b, const std::byte* x) {
    if constexpr (kRows > 0) {
      const __m256i v = broadcast_int(x);
      const __m256i next = broadcast_int(x + 4);
      const __m256i ones = _mm256_set1_epi16(1);
      const __m256i low = _mm256_add_epi16(_mm256_maddubs_epi16(a.low, v), _mm256_maddubs_epi16(b.low, next));
      const __m256i high = _mm256_add_epi16(_mm256_maddubs_epi16(a.high, v), _mm256_maddubs_epi16(b.high, next));
      dot.low = _mm256_add_epi32(dot.low, _mm256_madd_epi16(low, ones));
      dot.high = _mm256_add_epi32(dot.high, _mm256_madd_epi16(high, ones));
      add<kStride>(dot.rest, a, b, x + kStride);
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
    using Kernel = BitKernel<Format, SixteenBitProduct>;
    pack_records<Kernel::kMostRows, Kernel::kRecordBytes, Kernel::kBlockGroups>(x, x_stride, rows, cols, group_begin,
                                                                                group_end, out, Record<Format>::pack);
  });
}

void linear_bits(const LinearTask& task) {
  with_bit_format(task.type, [&]<typename Format>(Format) { Walk<BitKernel<Format, SixteenBitProduct>>(task).run(); });
}

}  // namespace drafthorse::avx2
