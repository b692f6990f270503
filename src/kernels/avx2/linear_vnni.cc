#include <immintrin.h>

#include "kernels/avx2/linear.h"
#include "kernels/avx2/linear_bits.h"
#include "kernels/avx2/linear_blocks.h"
#include "kernels/linear_walk.h"

namespace drafthorse::avx2 {
namespace {

/// 4 products of an unsigned and a signed byte and their sum in one instruction.
struct VnniProduct {
  static constexpr std::size_t kValueBytes = kGroup;

  template <std::size_t kStride, int kRows>
  [[gnu::always_inline]] static void add(IntegerSums<kRows>& dot, __m256i w_low, __m256i w_high, const std::byte* x) {
    if constexpr (kRows > 0) {
      const __m256i v = broadcast_int(x);
      dot.low = _mm256_dpbusd_avx_epi32(dot.low, w_low, v);
      dot.high = _mm256_dpbusd_avx_epi32(dot.high, w_high, v);
      add<kStride>(dot.rest, w_low, w_high, x + kStride);
    }
  }
};

using VnniKernel = Q8Kernel<VnniProduct>;

void pack_q8(const float* x, std::int64_t count, std::byte* record) {
  const QuantizedGroup group{GroupValues(x, count)};
  for (int i = 0; i < 4; ++i) {
    alignas(32) std::int32_t q[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(q), group.q[i]);
    for (int k = 0; k < 8; ++k) record[8 * i + k] = static_cast<std::byte>(q[k]);
  }
  pack_q8_tail(group, record + VnniProduct::kValueBytes);
}

}  // namespace

void pack_rows_vnni(WeightType type, const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols,
                    std::int64_t group_begin, std::int64_t group_end, std::byte* out) {
  if (type != WeightType::kQ8_0) return pack_rows(type, x, x_stride, rows, cols, group_begin, group_end, out);
  pack_records<VnniKernel::kMostRows, VnniKernel::kRecordBytes>(x, x_stride, rows, cols, group_begin, group_end, out,
                                                                pack_q8);
}

void linear_vnni(const LinearTask& task) {
  if (!is_quantized(task.type)) return linear(task);
  if (task.type != WeightType::kQ8_0) return linear_bits_vnni(task);
  Walk<VnniKernel>(task).run();
}

}  // namespace drafthorse::avx2
