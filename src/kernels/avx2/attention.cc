#include "kernels/avx2/attention.h"

#include "kernels/avx2/attention_rows.h"
#include "kernels/avx2/functions.h"

namespace drafthorse::avx2 {
namespace {

struct F32Cache {
  static constexpr Index kElements = 1;

  template <int kElement>
  static __m256 element(__m256i words) {
    return from_bits(words);
  }
  static __m256 rounded(__m256 x) { return x; }
};

/// bf16 keys and values, widened and multiplied as float32.
struct Bf16Cache {
  static constexpr Index kElements = 2;

  template <int kElement>
  static __m256 element(__m256i words) {
    if constexpr (kElement == 0) return from_bits(_mm256_slli_epi32(words, 16));
    return from_bits(_mm256_and_si256(words, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static __m256 rounded(__m256 x) { return from_bits(bf16_bits(x)); }
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
  for (Index d = 0; d < task.head_dim; d += kLanes) store_some(task.out, d, task.head_dim, _mm256_setzero_ps());
  for (Index c = 0; c < task.chunks; ++c) {
    const float sum = task.sum[c * task.stat_stride];
    if (sum == 0.0f) continue;
    const __m256 weight = exp(splat(task.max[c * task.stat_stride] - best));
    const float* partial = task.partial + c * task.partial_stride;
    total = __builtin_fmaf(_mm256_cvtss_f32(weight), sum, total);
    for (Index d = 0; d < task.head_dim; d += kLanes) {
      const __m256 before = load_some(task.out, d, task.head_dim);
      store_some(task.out, d, task.head_dim, _mm256_fmadd_ps(weight, load_some(partial, d, task.head_dim), before));
    }
  }
  if (total == 0.0f) return;  // nothing was visible
  for (Index d = 0; d < task.head_dim; d += kLanes) {
    store_some(task.out, d, task.head_dim, _mm256_div_ps(load_some(task.out, d, task.head_dim), splat(total)));
  }
}

}  // namespace drafthorse::avx2
