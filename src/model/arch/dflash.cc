#include "model/arch/dflash.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cache/kv_cache.h"
#include "checkpoint/draft_names.h"
#include "model/arch/dflash_layout.h"
#include "model/layers/context_attention.h"
#include "model/layers/draft_head.h"
#include "model/layers/linear_input.h"
#include "model/layers/memory_need.h"
#include "model/layers/rope_frequencies.h"
#include "model/layers/swiglu_mlp.h"
#include "model/layers/weight_loader.h"
#include "ops/norm.h"
#include "tensor/arena.h"

namespace drafthorse {
namespace {

struct DflashLayer {
  AlignedBuffer input_norm;
  ContextAttention attention;
  AlignedBuffer post_attention_norm;
  SwigluMlp mlp;
  std::size_t visibility_index;

  DflashLayer(WeightLoader& loader, const DflashLayout& layout, int i, std::size_t visible)
      : input_norm(norm(loader, layout, i, "input_layernorm")),
        attention(loader, layout.attention_module(i), layout.attention(), layout.attention_owner(i)),
        post_attention_norm(norm(loader, layout, i, "post_attention_layernorm")),
        mlp(loader, layout.mlp(i)),
        visibility_index(visible) {}

  static AlignedBuffer norm(WeightLoader& loader, const DflashLayout& layout, int i, const char* name) {
    return loader.vector(layout.names.layer(i) + name + ".weight", layout.config.hidden_size, layout.norm_owner(i));
  }
};

class DflashModel : public DraftModel {
 public:
  DflashModel(WeightLoader& loader, const DflashLayout& layout, DraftTarget& target, const DraftHeadChoice& head,
              ExecContext& exec)
      : exec_(exec),
        target_(target),
        head_(target, head, exec),
        hidden_(layout.config.hidden_size),
        eps_(static_cast<float>(layout.config.rms_norm_eps)),
        context_(layout.context),
        shape_(layout.attention()),
        norm_context_(layout.config.family == DraftFamily::kLaguna),
        embedding_scale_(static_cast<float>(layout.config.input_embedding_scale)),
        output_multiplier_(static_cast<float>(layout.config.output_multiplier)),
        softcap_(static_cast<float>(layout.config.final_logit_softcapping)),
        rope_(rope_table(layout.config.rope, layout.context + layout.config.block_size, exec.pool)),
        pages_(shape_.kv) {
    const DraftConfig& config = layout.config;
    facts_.block_size = config.block_size;
    facts_.mask_token_id = static_cast<std::int32_t>(config.mask_token_id);
    facts_.taps.assign(config.target_layer_ids.begin(), config.target_layer_ids.end());
    facts_.feature_width = layout.feature_width();
    facts_.vocab = head.vocab;
    for (int t = 0; layout.aux_norms && t < config.taps(); ++t) {
      aux_norms_.push_back(loader.vector(layout.aux_norm(t), hidden_, "the norm of tap " + std::to_string(t)));
    }
    fc_ = loader.linear(layout.fc());
    hidden_norm_ = loader.vector(layout.names.hidden_norm + ".weight", hidden_, "the norm of context rows");
    for (int i = 0; i < config.num_hidden_layers; ++i) {
      layers_.emplace_back(loader, layout, i, visibility_index(visibility(config, i)));
    }
    final_norm_ = loader.vector(layout.names.final_norm() + ".weight", hidden_, "the final norm");
    overlays_.resize(layers_.size());
  }

  const DraftFacts& facts() const override { return facts_; }

  std::unique_ptr<CacheSet> make_caches() override {
    std::vector<std::unique_ptr<Cache>> caches;
    for (std::size_t i = 0; i < layers_.size(); ++i) caches.push_back(std::make_unique<KvCache>(pages_, context_));
    return std::make_unique<CacheSet>(std::move(caches));
  }

  ConstRows forward(ConstRows features, std::span<const std::int32_t> ids, CacheSet& caches) override {
    scratch_.reset();
    const std::int64_t context = features.rows;
    const auto block = static_cast<std::int64_t>(ids.size());
    const std::int64_t rows = context + block;
    DRAFTHORSE_CHECK(rows > 0, "neither features nor ids");
    DRAFTHORSE_CHECK(context == 0 || features.cols == facts_.feature_width, features.cols << " feature columns");
    DRAFTHORSE_CHECK(block <= facts_.block_size, block << " block rows of " << facts_.block_size);
    const std::int64_t intermediate = layers_.front().mlp.intermediate();
    std::byte* packing =
        scratch_.bytes(packing_bytes(rows, std::max({facts_.feature_width, shape_.q_cols(), intermediate}), exec_));

    // What a layer reads: context rows, the same in every layer, then the normed block rows of that layer.
    const Rows inputs = scratch_.rows(rows, hidden_);
    Rows context_rows = inputs.slice(0, context);
    const Rows block_rows = inputs.slice(context, rows);
    if (norm_context_) context_rows = scratch_.rows(context, hidden_);
    if (context > 0) project_features(features, packing, context_rows);

    const Rows h = scratch_.rows(block, hidden_);  // the residual stream
    const Rows normed = scratch_.rows(block, hidden_);
    const Rows delta = scratch_.rows(block, hidden_);
    const Rows gate_up = scratch_.rows(block, 2 * intermediate);
    const ContextAttention::Scratch attention = {
        scratch_.rows(rows, 2 * shape_.kv_cols()), scratch_.rows(block, shape_.q_cols()),
        scratch_.rows(block, shape_.q_cols()), scratch_.rows(block, shape_.heads), packing};
    const AttentionPlan* plans = plan_block(caches.offset() + context, block);
    if (block > 0) {
      target_.embed_raw(ids, h);
      scale_rows(embedding_scale_, h);
      rms_norm(h, layers_.front().input_norm.as<float>(), eps_, block_rows, exec_);
    }
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const DflashLayer& layer = layers_[i];
      if (norm_context_) rms_norm(context_rows, layer.input_norm.as<float>(), eps_, inputs.slice(0, context), exec_);
      auto& cache = static_cast<KvCache&>(caches.layer(static_cast<std::int64_t>(i)));
      layer.attention.forward(inputs, context, cache, overlays_[i], plans[layer.visibility_index], rope_, attention,
                              delta, exec_);
      if (block == 0) continue;
      add_rms_norm(delta, h, layer.post_attention_norm.as<float>(), eps_, normed, exec_);
      layer.mlp.forward(normed, gate_up, packing, delta, exec_);
      const bool last = i + 1 == layers_.size();
      const AlignedBuffer& next_norm = last ? final_norm_ : layers_[i + 1].input_norm;
      add_rms_norm(delta, h, next_norm.as<float>(), eps_, last ? normed : block_rows, exec_);
    }
    return normed;
  }

  void unembed(ConstRows hidden, const LogitsSink& sink) override {
    head_.unembed(hidden, output_multiplier_, softcap_, sink);
  }

 private:
  /// out = hidden_norm(fc(features)), each tap normed first where the draft says so.
  void project_features(ConstRows features, std::byte* packing, Rows out) {
    if (!aux_norms_.empty()) {
      const Rows normed = scratch_.rows(features.rows, features.cols);
      for (std::size_t t = 0; t < aux_norms_.size(); ++t) {
        const std::int64_t first = static_cast<std::int64_t>(t) * hidden_;
        rms_norm(ConstRows{features.data + first, features.rows, hidden_, features.stride}, aux_norms_[t].as<float>(),
                 eps_, Rows{normed.data + first, normed.rows, hidden_, normed.stride}, exec_);
      }
      features = normed;
    }
    LinearInput(features, packing, exec_).into(fc_, out);
    rms_norm(out, hidden_norm_.as<float>(), eps_, out, exec_);
  }

  void scale_rows(float factor, Rows x) const {
    if (factor == 1.0f) return;
    for (std::int64_t r = 0; r < x.rows; ++r) exec_.kernels.scale(factor, x.row(r), x.cols);
  }

  /// One plan per visibility rule of the layers.
  const AttentionPlan* plan_block(std::int64_t first, std::int64_t rows) {
    auto* plans = scratch_.array<AttentionPlan>(rules_.size());
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      new (&plans[i]) AttentionPlan(
          rows == 0 ? AttentionPlan() : block_plan(rules_[i], attention_shape(shape_), first, rows, scratch_, exec_));
    }
    return plans;
  }

  std::size_t visibility_index(const Visibility& rule) {
    const auto at = std::find(rules_.begin(), rules_.end(), rule);
    const auto index = static_cast<std::size_t>(at - rules_.begin());
    if (at == rules_.end()) rules_.push_back(rule);
    return index;
  }

  ExecContext& exec_;
  DraftTarget& target_;
  DraftHead head_;
  DraftFacts facts_;
  std::int64_t hidden_;
  float eps_;
  std::int64_t context_;
  AttentionBlockShape shape_;
  bool norm_context_;  // Laguna: context rows pass through each layer's input norm
  float embedding_scale_;
  float output_multiplier_;
  float softcap_;
  RopeTable rope_;
  PagePool pages_;
  std::vector<Visibility> rules_;  // distinct
  std::vector<AlignedBuffer> aux_norms_;
  PackedMatrix fc_;
  AlignedBuffer hidden_norm_;
  std::vector<DflashLayer> layers_;
  AlignedBuffer final_norm_;
  std::vector<KvOverlay> overlays_;  // one per layer
  Arena scratch_;                    // of forward; its result lives here
};

}  // namespace

std::unique_ptr<DraftModel> load_dflash(const TensorSource& tensors, const DraftConfig& config, DraftTarget& target,
                                        const ModelOptions& options, const DraftHeadChoice& head, ExecContext& exec) {
  const DflashLayout layout(tensors, config, options, options.context > 0 ? options.context : target.facts().context);
  WeightLoader loader(tensors, options, layout.linear_bytes(tensors), exec);
  auto model = std::make_unique<DflashModel>(loader, layout, target, head, exec);
  require_all_draft_tensors_used(tensors, loader.used());
  return model;
}

LinearInventory dflash_linears(const TensorSource& tensors, const DraftConfig& config) {
  const ModelOptions options;
  const DflashLayout layout(tensors, config, options, 0);
  return {.linears = layout.linears(tensors), .also_plain = {}, .unused = {}};
}

MemoryNeed dflash_memory(const TensorSource& tensors, const DraftConfig& config, const TargetConfig& target,
                         const ModelOptions& options, std::int64_t rows) {
  const DflashLayout layout(tensors, config, options,
                            options.context > 0 ? options.context : target.max_position_embeddings);
  return memory_need({.linear_bytes = layout.linear_bytes(tensors),
                      .layers = config.num_hidden_layers,
                      .intermediate = config.intermediate_size,
                      .feature_width = 2 * layout.feature_width(),  // as they come and normed
                      .rotary_dims = config.rope.rotary_dims,
                      .context = layout.context + config.block_size,
                      .attention = layout.attention()},
                     rows);
}

}  // namespace drafthorse
