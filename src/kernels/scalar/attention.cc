#include "kernels/scalar/attention.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/cpu_features.h"
#include "kernels/scalar/functions.h"
#include "tensor/kv_layout.h"

namespace drafthorse::scalar {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The cache as one kv head sees it, element by element.
class Keys {
 public:
  explicit Keys(const AttentionTask& task)
      : task_(task), layout_{.type = task.kv_type, .kv_heads = 1, .head_dim = task.head_dim} {}

  float key(std::int64_t position, std::int64_t d) const {
    return element(key_tile(position), layout_.key_element(position, d));
  }
  float value(std::int64_t position, std::int64_t d) const {
    return element(key_tile(position) + task_.value_offset, layout_.value_element(position, d));
  }
  /// A number as the cache's type holds it.
  float rounded(float x) const { return task_.kv_type == ElementType::kBF16 ? bf16_to_float(float_to_bf16(x)) : x; }

 private:
  const std::byte* key_tile(std::int64_t position) const {
    const std::int64_t tile = position % task_.page_positions / kKvTile;
    return task_.pages[position / task_.page_positions] + static_cast<std::size_t>(tile) * task_.tile_stride +
           task_.head_offset;
  }
  float element(const std::byte* tile, std::int64_t index) const {
    if (task_.kv_type == ElementType::kBF16) return bf16_to_float(reinterpret_cast<const std::uint16_t*>(tile)[index]);
    return reinterpret_cast<const float*>(tile)[index];
  }

  const AttentionTask& task_;
  KvLayout layout_;
};

/// One row: keys [begin, end), all inside one chunk. Loops over positions and dimensions are nested so that neighbours
/// in the inner one belong to different sums; each sum's own order is that of docs/numerics.md.
[[gnu::always_inline]] inline void attend_body(const AttentionTask& task, const float* q, std::int64_t begin,
                                               std::int64_t end, float* out, float& max, float& sum) {
  const Keys keys(task);
  float query[kMaxHeadDim];
  for (std::int64_t d = 0; d < task.head_dim; ++d) query[d] = keys.rounded(q[d] * task.scale);
  float weight[kAttentionChunk];
  max = -kInfinity;
  std::fill_n(weight, end - begin, 0.0f);
  for (std::int64_t d = 0; d < task.head_dim; ++d) {
    for (std::int64_t p = begin; p < end; ++p) weight[p - begin] = fma(query[d], keys.key(p, d), weight[p - begin]);
  }
  for (std::int64_t p = begin; p < end; ++p) {
    float score = weight[p - begin];
    if (task.softcap != 0.0f) score = task.softcap * tanh(score / task.softcap);
    weight[p - begin] = score;
    max = larger(score, max);
  }
  max = max + 0.0f;  // -0 and 0 may both be the largest: one of them is stored
  float lane[kLanes] = {};
  for (std::int64_t p = begin; p < end; ++p) {
    float& w = weight[p - begin];
    w = keys.rounded(exp(w - max));
    lane[p % kLanes] = lane[p % kLanes] + w;
  }
  sum = sum_of_lanes(lane);
  std::fill_n(out, task.head_dim, 0.0f);
  for (std::int64_t p = begin; p < end; ++p) {
    for (std::int64_t d = 0; d < task.head_dim; ++d) out[d] = fma(weight[p - begin], keys.value(p, d), out[d]);
  }
}

/// The same code with the processor's own fused multiply-add instead of the C library's: same bits, far faster.
[[gnu::target("avx2,fma")]] void attend_with_fma(const AttentionTask& task, const float* q, std::int64_t begin,
                                                 std::int64_t end, float* out, float& max, float& sum) {
  attend_body(task, q, begin, end, out, max, sum);
}
void attend(const AttentionTask& task, const float* q, std::int64_t begin, std::int64_t end, float* out, float& max,
            float& sum) {
  attend_body(task, q, begin, end, out, max, sum);
}

}  // namespace

void attention(const AttentionTask& task) {
  const auto attend_row = cpu_features().avx2_fma_f16c ? attend_with_fma : attend;
  for (std::int64_t m = 0; m < task.queries; ++m) {
    const std::int64_t begin = std::max(task.visible_begin[m], task.chunk_begin);
    const std::int64_t end = std::min(task.visible_end[m], task.chunk_end);
    for (std::int64_t g = 0; g < task.group; ++g) {
      const std::int64_t row = m * task.group + g;
      attend_row(task, task.q + m * task.q_stride + g * task.head_dim, begin, end, task.out + row * task.head_dim,
                 task.max[row], task.sum[row]);
    }
  }
}

void attention_combine(const AttentionCombineTask& task) {
  float best = -kInfinity;
  for (std::int64_t c = 0; c < task.chunks; ++c) {
    if (task.sum[c * task.stat_stride] != 0.0f) best = larger(task.max[c * task.stat_stride], best);
  }
  float total = 0.0f;
  std::fill_n(task.out, task.head_dim, 0.0f);
  for (std::int64_t c = 0; c < task.chunks; ++c) {
    const float sum = task.sum[c * task.stat_stride];
    if (sum == 0.0f) continue;
    const float weight = exp(task.max[c * task.stat_stride] - best);
    const float* partial = task.partial + c * task.partial_stride;
    total = fma(weight, sum, total);
    for (std::int64_t d = 0; d < task.head_dim; ++d) task.out[d] = fma(weight, partial[d], task.out[d]);
  }
  if (total == 0.0f) return;  // nothing was visible
  for (std::int64_t d = 0; d < task.head_dim; ++d) task.out[d] = task.out[d] / total;
}

}  // namespace drafthorse::scalar
