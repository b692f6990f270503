#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "cache/cache.h"
#include "model/draft_model.h"
#include "model/model.h"

namespace drafthorse {

/// A cache whose state is the list of tokens written to it: what a scripted model remembers.
class RecordingCache : public Cache {
 public:
  std::int64_t offset() const override { return static_cast<std::int64_t>(tokens.size()); }
  void begin(std::int64_t rows) override;
  void commit(std::int64_t keep) override;
  std::size_t bytes() const override { return tokens.size() * sizeof(std::int32_t); }
  bool is_open() const { return base_ >= 0; }

  std::vector<std::int32_t> tokens;

 private:
  std::int64_t base_ = -1;
  std::int64_t room_ = 0;
};

/// The only layer of a scripted model's caches.
RecordingCache& recording(CacheSet& caches);

/// Logits of the token that follows `history` (the whole sequence so far).
using TargetRule = std::function<void(std::span<const std::int32_t> history, std::span<float> logits)>;

/// 30 at the successor of the last token, 0 elsewhere; tokens without one are followed by 0.
TargetRule successor_rule(std::map<std::int32_t, std::int32_t> next);
/// Logits in [-spread, spread) that depend on every token of the history: a model that notices any stray token in its
/// caches.
TargetRule hashed_rule(std::uint64_t salt, float spread);

/// A target whose hidden rows, features and logits are all the rule's row. What it knows of the past is what its
/// recording cache holds.
class ScriptedTarget : public Model {
 public:
  struct Call {
    std::int64_t offset;
    std::int64_t rows;
    bool operator==(const Call&) const = default;
  };

  explicit ScriptedTarget(TargetRule rule, std::int64_t vocab_width = 8);

  const ModelFacts& facts() const override { return facts_; }
  void embed_raw(std::span<const std::int32_t> ids, Rows out) override;
  void raw_logits(ConstRows hidden, float multiplier, float cap, const LogitsSink& sink) override;
  WeightType head_type() const override { return WeightType::kF32; }
  void head_row(std::int32_t id, float* values) const override;  ///< of the identity
  std::unique_ptr<CacheSet> make_caches() override;
  ForwardResult forward(const ForwardBatch& batch) override;
  void unembed(ConstRows hidden, const LogitsSink& sink) override;

  std::vector<Call> calls;        ///< one per sequence of each forward
  std::set<std::size_t> fail_at;  ///< forwards, by index into calls, that throw Error after writing half of their rows
  std::int64_t whole_rows = 0;    ///< rows unembed() was asked to materialise
  std::int64_t tap_rows = 0;      ///< rows that were tapped

 private:
  TargetRule rule_;
  ModelFacts facts_;
  std::vector<float> hidden_;
  std::vector<float> taps_;
};

/// Logits of a block's row: row i >= 1 stands for slot anchor_slot + i.
using DraftRule =
    std::function<void(std::int32_t anchor, std::int64_t anchor_slot, std::int64_t i, std::span<float> logits)>;

/// Row i is hot at the i-th successor of the anchor.
DraftRule successor_draft(std::map<std::int32_t, std::int32_t> next);

/// A block-diffusion draft for a scripted target (one tap, features = the target's logit rows). Remembers the hot index
/// of each context row it is given.
class ScriptedDraft : public DraftModel {
 public:
  struct Call {
    std::int64_t offset;
    std::vector<std::int32_t> context;  ///< hot index of each feature row
    std::vector<std::int32_t> block;
    bool operator==(const Call&) const = default;
  };

  ScriptedDraft(DraftRule rule, std::int64_t block_size, std::int32_t mask_token_id = 6, std::int64_t vocab_width = 8);

  const DraftFacts& facts() const override { return facts_; }
  std::unique_ptr<CacheSet> make_caches() override;
  ConstRows forward(ConstRows features, std::span<const std::int32_t> ids, CacheSet& caches) override;
  void unembed(ConstRows hidden, const LogitsSink& sink) override;

  std::vector<Call> calls;
  std::set<std::size_t> fail_at;       ///< calls that throw Error after writing half of their context
  std::set<std::size_t> fail_unembed;  ///< unembed() calls, counted from 0, that throw Error
  std::int64_t whole_rows = 0;         ///< rows unembed() was asked to materialise

 private:
  DraftRule rule_;
  DraftFacts facts_;
  std::size_t unembeds_ = 0;
  std::vector<float> hidden_;
};

}  // namespace drafthorse
