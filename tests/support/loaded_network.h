#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/draft_config.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/target_config.h"
#include "model/registry.h"
#include "ops/exec_context.h"

namespace drafthorse {

/// A target loaded from a folder, with what it borrows from.
struct LoadedTarget {
  std::unique_ptr<TensorSource> tensors;
  TargetConfig config;
  std::unique_ptr<Model> model;

  LoadedTarget(const std::string& folder, const ModelOptions& options, ExecContext& exec)
      : tensors(open_safetensors(folder)),
        config(read_target_config(folder)),
        model(load_target(*tensors, config, options, exec)) {}
};

/// The same for a draft of `target`.
struct LoadedDraft {
  std::unique_ptr<TensorSource> tensors;
  DraftConfig config;
  std::unique_ptr<DraftModel> model;

  LoadedDraft(const std::string& folder, DraftTarget& target, const ModelOptions& options, ExecContext& exec,
              const DraftHeadChoice& head = {})
      : tensors(open_safetensors(folder)),
        config(read_draft_config(folder)),
        model(load_draft(*tensors, config, target, options, head, exec)) {}
};

/// Options under which a network computes what float32 software does.
inline ModelOptions exact_options() {
  return {
      .weights = WeightType::kF32, .kv_type = ElementType::kF32, .context = 0, .page_positions = 64, .progress = {}};
}

/// A copied matrix of float32 rows.
struct RowCopy {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<float> values;

  RowCopy() = default;
  explicit RowCopy(ConstRows x) : rows(0), cols(x.cols) { append(x); }
  void append(ConstRows x) {
    cols = x.cols;
    rows += x.rows;
    for (std::int64_t r = 0; r < x.rows; ++r) values.insert(values.end(), x.row(r), x.row(r) + x.cols);
  }
  ConstRows view() const { return {values.data(), rows, cols, cols}; }
  std::span<const float> row(std::int64_t r) const {
    return {values.data() + r * cols, static_cast<std::size_t>(cols)};
  }
  bool operator==(const RowCopy&) const = default;
};

/// Hidden rows and taps of ids[begin, end) after what the caches hold.
struct PassCopy {
  RowCopy hidden;
  RowCopy taps;
};
inline PassCopy forward_one(Model& model, CacheSet& caches, std::span<const std::int32_t> ids,
                            std::span<const std::int64_t> taps = {}) {
  const SequenceRows sequence{ids, &caches};
  const ForwardResult result = model.forward({{&sequence, 1}, taps});
  return {RowCopy(result.hidden), RowCopy(result.taps)};
}

/// All logits of hidden rows.
template <typename Network>
RowCopy logits_of(Network& network, ConstRows hidden, std::int64_t vocab) {
  RowCopy logits;
  logits.rows = hidden.rows;
  logits.cols = vocab;
  logits.values.resize(static_cast<std::size_t>(hidden.rows * vocab));
  network.unembed(hidden, {.logits = {logits.values.data(), hidden.rows, vocab, vocab}});
  return logits;
}

}  // namespace drafthorse
