#include "support/scripted_target.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "kernels/kernel_table.h"

namespace drafthorse {
namespace {

std::int32_t hot_index(std::span<const float> row) {
  return static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

std::span<const float> row_of(ConstRows rows, std::int64_t r) {
  return {rows.row(r), static_cast<std::size_t>(rows.cols)};
}

// Hidden rows are logits already.
void fill_sink(ConstRows hidden, const LogitsSink& sink) {
  for (std::int64_t r = 0; r < hidden.rows; ++r) {
    if (sink.logits.data != nullptr) std::copy(hidden.row(r), hidden.row(r) + hidden.cols, sink.logits.row(r));
    if (sink.argmax != nullptr) sink.argmax[r] = hot_index(row_of(hidden, r));
    if (sink.hash != nullptr) sink.hash[r] = kernel_table("scalar").logits_hash(hidden.row(r), 0, hidden.cols);
  }
}

std::unique_ptr<CacheSet> one_recording_layer() {
  std::vector<std::unique_ptr<Cache>> layers;
  layers.push_back(std::make_unique<RecordingCache>());
  return std::make_unique<CacheSet>(std::move(layers));
}

std::int32_t successor(const std::map<std::int32_t, std::int32_t>& next, std::int32_t token) {
  const auto found = next.find(token);
  return found == next.end() ? 0 : found->second;
}

void set_hot(std::span<float> logits, std::int32_t token) {
  std::fill(logits.begin(), logits.end(), 0.0f);
  logits[static_cast<std::size_t>(token)] = 30.0f;
}

}  // namespace

void RecordingCache::begin(std::int64_t rows) {
  DRAFTHORSE_CHECK(base_ < 0, "a transaction is open already");
  base_ = offset();
  room_ = rows;
}

void RecordingCache::commit(std::int64_t keep) {
  DRAFTHORSE_CHECK(base_ >= 0, "no transaction is open");
  DRAFTHORSE_CHECK(offset() - base_ <= room_, offset() - base_ << " rows written, " << room_ << " announced");
  DRAFTHORSE_CHECK(keep >= 0 && base_ + keep <= offset(), "keep " << keep << " of " << offset() - base_);
  tokens.resize(static_cast<std::size_t>(base_ + keep));
  base_ = -1;
}

RecordingCache& recording(CacheSet& caches) { return dynamic_cast<RecordingCache&>(caches.layer(0)); }

TargetRule successor_rule(std::map<std::int32_t, std::int32_t> next) {
  return [next = std::move(next)](std::span<const std::int32_t> history, std::span<float> logits) {
    set_hot(logits, successor(next, history.back()));
  };
}

TargetRule hashed_rule(std::uint64_t salt, float spread) {
  return [salt, spread](std::span<const std::int32_t> history, std::span<float> logits) {
    std::uint64_t state = salt;
    for (const std::int32_t token : history)
      state = mix64(state + 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(token));
    for (std::size_t i = 0; i < logits.size(); ++i) {
      logits[i] = spread * static_cast<float>(static_cast<double>(splitmix64(state, i) >> 11) * 0x1p-52 - 1.0);
    }
  };
}

DraftRule successor_draft(std::map<std::int32_t, std::int32_t> next) {
  return [next = std::move(next)](std::int32_t anchor, std::int64_t, std::int64_t i, std::span<float> logits) {
    for (std::int64_t step = 0; step < i; ++step) anchor = successor(next, anchor);
    set_hot(logits, anchor);
  };
}

ScriptedTarget::ScriptedTarget(TargetRule rule, std::int64_t vocab_width) : rule_(std::move(rule)) {
  facts_ = {.architecture = "scripted",
            .layers = 1,
            .hidden_width = vocab_width,
            .vocab_width = vocab_width,
            .context = 1 << 20};
}

std::unique_ptr<CacheSet> ScriptedTarget::make_caches() { return one_recording_layer(); }

void ScriptedTarget::embed_raw(std::span<const std::int32_t> ids, Rows out) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    float* row = out.row(static_cast<std::int64_t>(i));
    std::fill(row, row + out.cols, 0.0f);
    row[ids[i]] = 1.0f;
  }
}

ForwardResult ScriptedTarget::forward(const ForwardBatch& batch) {
  const std::int64_t width = facts_.vocab_width;
  const auto taps = static_cast<std::int64_t>(batch.taps.size());
  std::int64_t rows = 0;
  for (const SequenceRows& sequence : batch.sequences) rows += std::ssize(sequence.ids);
  hidden_.assign(static_cast<std::size_t>(rows * width), 0.0f);
  taps_.assign(static_cast<std::size_t>(rows * width * taps), 0.0f);
  std::int64_t row = 0;
  for (const SequenceRows& sequence : batch.sequences) {
    std::vector<std::int32_t>& history = recording(*sequence.caches).tokens;
    const bool fails = fail_at.count(calls.size()) > 0;
    calls.push_back({std::ssize(history), std::ssize(sequence.ids)});
    std::size_t written = 0;
    for (const std::int32_t id : sequence.ids) {
      DRAFTHORSE_CHECK(id >= 0 && id < width, "token " << id);
      history.push_back(id);
      ++written;
      if (fails && 2 * written >= sequence.ids.size()) throw Error("scripted failure");
      const std::span<float> out{hidden_.data() + row * width, static_cast<std::size_t>(width)};
      rule_(history, out);
      for (std::int64_t t = 0; t < taps; ++t) {
        std::copy(out.begin(), out.end(), taps_.begin() + (row * taps + t) * width);
      }
      ++row;
    }
  }
  if (taps > 0) tap_rows += rows;
  ForwardResult result;
  result.hidden = {hidden_.data(), rows, width, width};
  if (taps > 0) result.taps = {taps_.data(), rows, width * taps, width * taps};
  return result;
}

void ScriptedTarget::unembed(ConstRows hidden, const LogitsSink& sink) {
  if (sink.logits.data != nullptr) whole_rows += hidden.rows;
  fill_sink(hidden, sink);
}

void ScriptedTarget::raw_logits(ConstRows hidden, float multiplier, float cap, const LogitsSink& sink) {
  DRAFTHORSE_CHECK(multiplier == 1.0f && cap == 0.0f, "a scripted head is plain");
  fill_sink(hidden, sink);
}

void ScriptedTarget::head_row(std::int32_t id, float* values) const {
  std::fill(values, values + facts_.hidden_width, 0.0f);
  values[id] = 1.0f;
}

ScriptedDraft::ScriptedDraft(DraftRule rule, std::int64_t block_size, std::int32_t mask_token_id,
                             std::int64_t vocab_width)
    : rule_(std::move(rule)) {
  facts_ = {.block_size = block_size, .mask_token_id = mask_token_id, .taps = {0}, .feature_width = vocab_width};
}

std::unique_ptr<CacheSet> ScriptedDraft::make_caches() { return one_recording_layer(); }

ConstRows ScriptedDraft::forward(ConstRows features, std::span<const std::int32_t> ids, CacheSet& caches) {
  const std::int64_t width = facts_.feature_width;
  DRAFTHORSE_CHECK(features.rows > 0 || !ids.empty(), "nothing to do");
  DRAFTHORSE_CHECK(features.rows == 0 || features.cols == width, "features of width " << features.cols);
  std::vector<std::int32_t>& context = recording(caches).tokens;
  const bool fails = fail_at.count(calls.size()) > 0;
  Call call{std::ssize(context), {}, {ids.begin(), ids.end()}};
  for (std::int64_t r = 0; r < features.rows; ++r) call.context.push_back(hot_index(row_of(features, r)));
  calls.push_back(call);
  for (std::size_t i = 0; i < call.context.size(); ++i) {
    if (fails && 2 * i >= call.context.size()) break;
    context.push_back(call.context[i]);
  }
  if (fails) throw Error("scripted draft failure");
  hidden_.assign(ids.size() * static_cast<std::size_t>(width), 0.0f);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::span<float> out{hidden_.data() + i * static_cast<std::size_t>(width), static_cast<std::size_t>(width)};
    rule_(ids.front(), std::ssize(context), static_cast<std::int64_t>(i), out);
  }
  return {hidden_.data(), std::ssize(ids), width, width};
}

void ScriptedDraft::unembed(ConstRows hidden, const LogitsSink& sink) {
  if (fail_unembed.count(unembeds_++) > 0) throw Error("scripted head failure");
  if (sink.logits.data != nullptr) whole_rows += hidden.rows;
  fill_sink(hidden, sink);
}

}  // namespace drafthorse
