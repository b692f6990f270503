#include "kernels/avx512/table.h"

#include "kernels/avx512/attention.h"
#include "kernels/avx512/choices.h"
#include "kernels/avx512/linear.h"
#include "kernels/avx512/rows.h"

namespace drafthorse::avx512 {
namespace {

constexpr KernelTable base(const char* name) {
  KernelTable table{};
  table.name = name;
  table.packed_rows_bytes = packed_rows_bytes;
  table.pack_rows = pack_rows;
  table.linear = linear;
  table.kv_write = kv_write;
  table.attention = attention;
  table.attention_combine = attention_combine;
  table.rms_norm = rms_norm;
  table.rope = rope;
  table.add = add;
  table.scale = scale;
  table.silu_multiply = silu_multiply;
  table.softplus = softplus;
  table.softcap = softcap;
  table.to_float = to_float;
  table.argmax = argmax;
  table.logits_hash = logits_hash;
  table.softmax = softmax;
  table.log_sum_exp = log_sum_exp;
  table.gumbel_scores = gumbel_scores;
  return table;
}

constexpr KernelTable bf16() {
  KernelTable table = base("avx512");
  table.pack_rows = pack_rows_bf16;
  table.linear = linear_bf16;
  table.attention = attention_bf16;
  return table;
}

}  // namespace

constexpr KernelTable kBaseTable = base("avx512-base");
constexpr KernelTable kTable = base("avx512");
constexpr KernelTable kBf16Table = bf16();

}  // namespace drafthorse::avx512
