#include "model/layers/causal_batch.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "cache/kv_cache.h"

namespace drafthorse {
namespace {

KvCache& kv_cache(const SequenceRows& sequence, std::int64_t layer) {
  return static_cast<KvCache&>(sequence.caches->layer(layer));
}

}  // namespace

CausalBatch::CausalBatch(const ForwardBatch& batch, std::span<const std::int64_t> windows, const AttentionShape& shape,
                         Arena& scratch, const ExecContext& exec)
    : sequences_(batch.sequences) {
  DRAFTHORSE_CHECK(!sequences_.empty(), "an empty batch");
  for (const SequenceRows& sequence : sequences_) {
    DRAFTHORSE_CHECK(!sequence.ids.empty() && sequence.caches != nullptr, "a sequence without rows or caches");
    rows_ += static_cast<std::int64_t>(sequence.ids.size());
  }
  const auto rows = static_cast<std::size_t>(rows_);
  ids_ = scratch.array<std::int32_t>(rows);
  runs_ = scratch.array<HeadRun>(sequences_.size());
  pages_ = scratch.array<KvPages>(sequences_.size());
  auto* query_runs = scratch.array<QueryRun>(sequences_.size());
  auto* visible_end = scratch.array<std::int64_t>(rows);
  std::int64_t row = 0;
  for (std::size_t s = 0; s < sequences_.size(); ++s) {
    const SequenceRows& sequence = sequences_[s];
    const auto count = static_cast<std::int64_t>(sequence.ids.size());
    runs_[s] = {.first_row = row, .rows = count, .position = sequence.caches->offset(), .pages = nullptr};
    query_runs[s] = {row, count};
    for (const std::int32_t id : sequence.ids) {
      ids_[row] = id;
      visible_end[row] = runs_[s].position + row - runs_[s].first_row + 1;
      ++row;
    }
  }
  plans_ = scratch.array<AttentionPlan>(windows.size());
  for (std::size_t w = 0; w < windows.size(); ++w) {
    auto* visible_begin = scratch.array<std::int64_t>(rows);
    for (std::size_t r = 0; r < rows; ++r) {
      visible_begin[r] = windows[w] == 0 ? 0 : std::max<std::int64_t>(0, visible_end[r] - windows[w]);
    }
    new (&plans_[w]) AttentionPlan(shape, {query_runs, sequences_.size()}, visible_begin, visible_end, scratch, exec);
  }
}

LayerRows CausalBatch::layer(std::int64_t layer, std::size_t window_index) {
  for (std::size_t s = 0; s < sequences_.size(); ++s) {
    KvCache& cache = kv_cache(sequences_[s], layer);
    runs_[s].pages = cache.reserve(runs_[s].rows);
    pages_[s] = cache.pages();
  }
  return {{runs_, sequences_.size()}, pages_, &plans_[window_index]};
}

void CausalBatch::close() {
  for (std::size_t s = 0; s < sequences_.size(); ++s) {
    for (std::int64_t i = 0; i < sequences_[s].caches->layers(); ++i) kv_cache(sequences_[s], i).advance(runs_[s].rows);
  }
}

}  // namespace drafthorse
