#include "kernels/avx512/attention.h"

#include "kernels/avx512/attention_rows.h"
#include "kernels/avx512/functions.h"

namespace drafthorse::avx512 {
namespace {

struct F32Cache {
  static constexpr Index kElements = 1;
  static constexpr Index kFactors = 1;

  static __m512 split(__m512i raw) { return from_bits(raw); }
  static __m512 add(__m512 sums, __m512 value, const float* factors) {
    return _mm512_fmadd_ps(value, splat(*factors), sums);
  }
  static __m512 add_half(__m512 sums, __m512i, const float*, bool) {
    return sums;
  }  // a word is one position: never half visible
  static void store_query(const float* q, float scale, Index head_dim, float* out) {
    for (Index d = 0; d < head_dim; d += kLanes)
      _mm512_store_ps(out + d, _mm512_mul_ps(load_some(q, d, head_dim), splat(scale)));
  }
  static __m512 store_weights(__m512 low, __m512 high, __m512 sums, float* out) {
    _mm512_store_ps(out, low);
    _mm512_store_ps(out + kLanes, high);
    return _mm512_add_ps(_mm512_add_ps(sums, low), high);
  }
};

/// bf16 keys and values, widened and multiplied as float32: the bits of scalar/.
struct Bf16Cache {
  static constexpr Index kElements = 2;
  static constexpr Index kFactors = 2;

  struct Pair {
    __m512 even;
    __m512 odd;
  };
  static Pair split(__m512i raw) {
    return {from_bits(_mm512_slli_epi32(raw, 16)),
            from_bits(_mm512_and_si512(raw, _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
  }
  static __m512 add(__m512 sums, Pair value, const float* factors) {
    return _mm512_fmadd_ps(value.odd, splat(factors[1]), _mm512_fmadd_ps(value.even, splat(factors[0]), sums));
  }
  static __m512 add_half(__m512 sums, __m512i raw, const float* factors, bool odd) {
    const Pair value = split(raw);
    return _mm512_fmadd_ps(odd ? value.odd : value.even, splat(factors[odd ? 1 : 0]), sums);
  }
  static void store_query(const float* q, float scale, Index head_dim, float* out) {
    for (Index d = 0; d < head_dim; d += kLanes) {
      _mm512_store_si512(out + d, bf16_bits(_mm512_mul_ps(load_some(q, d, head_dim), splat(scale))));
    }
  }
  static __m512 store_weights(__m512 low, __m512 high, __m512 sums, float* out) {
    return F32Cache::store_weights(from_bits(bf16_bits(low)), from_bits(bf16_bits(high)), sums, out);
  }
};

}  // namespace

void attention(const AttentionTask& task) {
  if (task.kv_type == ElementType::kBF16) return attend<Bf16Cache>(task);
  attend<F32Cache>(task);
}

void attention_combine(const AttentionCombineTask& task) {
  const float none = -__builtin_inff();
  float best = none;
  for (Index c = 0; c < task.chunks; ++c) {
    const float max = task.max[c * task.stat_stride];
    if (task.sum[c * task.stat_stride] != 0.0f && max > best) best = max;
  }
  float total = 0.0f;
  for (Index d = 0; d < task.head_dim; d += kLanes) {
    _mm512_mask_storeu_ps(task.out + d, lanes_left(d, task.head_dim), _mm512_setzero_ps());
  }
  for (Index c = 0; c < task.chunks; ++c) {
    const float sum = task.sum[c * task.stat_stride];
    if (sum == 0.0f) continue;
    const __m512 weight = exp(splat(task.max[c * task.stat_stride] - best));
    const float* partial = task.partial + c * task.partial_stride;
    total = __builtin_fmaf(_mm512_cvtss_f32(weight), sum, total);
    for (Index d = 0; d < task.head_dim; d += kLanes) {
      const __m512 added =
          _mm512_fmadd_ps(weight, load_some(partial, d, task.head_dim), load_some(task.out, d, task.head_dim));
      _mm512_mask_storeu_ps(task.out + d, lanes_left(d, task.head_dim), added);
    }
  }
  if (total == 0.0f) return;  // nothing was visible
  for (Index d = 0; d < task.head_dim; d += kLanes) {
    _mm512_mask_storeu_ps(task.out + d, lanes_left(d, task.head_dim),
                          _mm512_div_ps(load_some(task.out, d, task.head_dim), splat(total)));
  }
}

}  // namespace drafthorse::avx512
