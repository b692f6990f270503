#include "kernels/avx512/attention.h"
#include "kernels/avx512/attention_rows.h"
#include "kernels/avx512/functions.h"

namespace drafthorse::avx512 {
namespace {

/// bf16 keys and values through vdpbf16ps: two products to a lane and step. Not the bits of scalar/, within
/// docs/numerics.md's bound; still one fixed order for every row.
struct Bf16DotCache {
  static constexpr Index kElements = 2;
  static constexpr Index kFactors = 1;

  static __m512bh split(__m512i raw) { return (__m512bh)raw; }
  static __m512 add(__m512 sums, __m512bh value, const float* factors) {
    int pair;
    __builtin_memcpy(&pair, factors, sizeof pair);
    return _mm512_dpbf16_ps(sums, value, (__m512bh)_mm512_set1_epi32(pair));
  }
  /// The weight of the position outside is 0, and so is the value here: whatever its memory holds.
  static __m512 add_half(__m512 sums, __m512i raw, const float* factors, bool odd) {
    const __m512i half = _mm512_set1_epi32(odd ? static_cast<int>(0xffff0000u) : 0xffff);
    return add(sums, split(_mm512_and_si512(raw, half)), factors);
  }
  static void store_query(const float* q, float scale, Index head_dim, float* out) {
    for (Index d = 0; d < head_dim; d += 2 * kLanes) {
      _mm512_store_si512(out + d / 2, packed_bf16(_mm512_mul_ps(load_some(q, d, head_dim), splat(scale)),
                                                  _mm512_mul_ps(load_some(q, d + kLanes, head_dim), splat(scale))));
    }
  }
  static __m512 store_weights(__m512 low, __m512 high, __m512 sums, float* out) {
    const __m512bh packed = _mm512_cvtne2ps_pbh(high, low);
    _mm512_store_si512(out, (__m512i)packed);
    return _mm512_dpbf16_ps(sums, packed, (__m512bh)_mm512_set1_epi32(0x3f803f80));  // x (1, 1)
  }
};

}  // namespace

void attention_bf16(const AttentionTask& task) {
  if (task.kv_type == ElementType::kBF16) return attend<Bf16DotCache>(task);
  attention(task);
}

}  // namespace drafthorse::avx512
