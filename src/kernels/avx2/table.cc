#include "kernels/avx2/table.h"

#include "kernels/avx2/attention.h"
#include "kernels/avx2/choices.h"
#include "kernels/avx2/linear.h"
#include "kernels/avx2/rows.h"

namespace drafthorse::avx2 {
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

constexpr KernelTable vnni() {
  KernelTable table = base("avx2");
  table.pack_rows = pack_rows_vnni;
  table.linear = linear_vnni;
  return table;
}

}  // namespace

constexpr KernelTable kBaseTable = base("avx2-base");
constexpr KernelTable kTable = base("avx2");
constexpr KernelTable kVnniTable = vnni();

}  // namespace drafthorse::avx2
