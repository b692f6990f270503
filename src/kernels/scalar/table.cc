#include "kernels/scalar/table.h"

#include "kernels/scalar/attention.h"
#include "kernels/scalar/choices.h"
#include "kernels/scalar/linear.h"
#include "kernels/scalar/rows.h"

namespace drafthorse::scalar {

constexpr KernelTable kTable = {
    .name = "scalar",
    .packed_rows_bytes = packed_rows_bytes,
    .pack_rows = pack_rows,
    .linear = linear,
    .kv_write = kv_write,
    .attention = attention,
    .attention_combine = attention_combine,
    .rms_norm = rms_norm,
    .rope = rope,
    .add = add,
    .scale = scale,
    .silu_multiply = silu_multiply,
    .softplus = softplus,
    .softcap = softcap,
    .to_float = to_float,
    .argmax = argmax,
    .logits_hash = logits_hash,
    .softmax = softmax,
    .log_sum_exp = log_sum_exp,
    .gumbel_scores = gumbel_scores,
};

}  // namespace drafthorse::scalar
