#include "model/layers/draft_head.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "ops/linear.h"
#include "ops/unembed.h"
#include "tensor/aligned_buffer.h"

namespace drafthorse {
namespace {

/// Rows ids[0..] of the target's head (all when empty), packed as `type` a tile at a time: no float copy of the whole.
PackedMatrix packed_rows_of(const DraftTarget& target, const std::vector<std::int32_t>& ids, WeightType type,
                            ExecContext& exec) {
  const std::int64_t cols = target.facts().hidden_width;
  const std::int64_t rows = ids.empty() ? target.facts().vocab_width : std::ssize(ids);
  PackedMatrix all = packed_matrix(type, rows, cols);
  exec.pool.parallel_for(all.tiles(), [&](std::int64_t tile, int) {
    const std::int64_t first = tile * kTileRows;
    const std::int64_t count = std::min(kTileRows, rows - first);
    AlignedBuffer values(static_cast<std::size_t>(count * cols) * sizeof(float));
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t row = first + r;
      const std::int32_t id = ids.empty() ? static_cast<std::int32_t>(row) : ids[static_cast<std::size_t>(row)];
      target.head_row(id, values.as<float>() + r * cols);
    }
    const StoredMatrix stored{ElementType::kF32, count, cols, {values.data(), values.size()}};
    PackedMatrix one = packed_matrix(type, count, cols);
    pack_tiles({&stored, 1}, "the draft's copy of the output head", 0, 1, one);
    std::memcpy(all.data.data() + static_cast<std::size_t>(tile) * all.tile_bytes(), one.data.data(), one.data.size());
  });
  return all;
}

}  // namespace

DraftHead::DraftHead(DraftTarget& target, const DraftHeadChoice& choice, ExecContext& exec)
    : target_(target), exec_(exec), vocab_(choice.vocab) {
  for (std::size_t i = 0; i < vocab_.size(); ++i) {
    DRAFTHORSE_CHECK(vocab_[i] > (i == 0 ? -1 : vocab_[i - 1]) && vocab_[i] < target.facts().vocab_width,
                     "id " << vocab_[i] << " at " << i << " of a draft's vocabulary");
  }
  if (choice.copies()) copy_ = packed_rows_of(target, vocab_, choice.type.value_or(target.head_type()), exec);
}

std::uint64_t DraftHead::bytes(const DraftHeadChoice& choice, WeightType target_type, std::int64_t vocab_width,
                               std::int64_t hidden_width) {
  if (!choice.copies()) return 0;
  const std::int64_t rows = choice.vocab.empty() ? vocab_width : std::ssize(choice.vocab);
  return packed_bytes(choice.type.value_or(target_type), rows, hidden_width);
}

void DraftHead::unembed(ConstRows hidden, float multiplier, float cap, const LogitsSink& sink) {
  if (copy_.rows == 0) {
    target_.raw_logits(hidden, multiplier, cap, sink);
    return;
  }
  scratch_.reset();
  std::byte* packing = scratch_.bytes(packed_rows_bytes(copy_.type, hidden.rows, hidden.cols, exec_));
  const PackedRows packed = pack_rows(hidden, copy_.type, packing, exec_);
  drafthorse::unembed(copy_, packed, {multiplier, cap, sink.logits, sink.argmax, sink.hash}, scratch_, exec_);
  if (sink.argmax == nullptr || vocab_.empty()) return;
  for (std::int64_t r = 0; r < hidden.rows; ++r) sink.argmax[r] = vocab_[static_cast<std::size_t>(sink.argmax[r])];
}

}  // namespace drafthorse
