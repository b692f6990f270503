#include "model/arch/qwen.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cache/kv_cache.h"
#include "checkpoint/name_prefix.h"
#include "model/layers/attention_block.h"
#include "model/layers/linear_input.h"
#include "model/layers/memory_need.h"
#include "model/layers/rope_frequencies.h"
#include "model/layers/swiglu_mlp.h"
#include "model/layers/weight_loader.h"
#include "ops/embedding.h"
#include "ops/norm.h"
#include "ops/unembed.h"
#include "tensor/arena.h"

namespace drafthorse {
namespace {

/// The names and shapes of a checkpoint's tensors.
struct QwenLayout {
  const TargetConfig& config;
  const ModelOptions& options;
  NamePrefix names;
  OutputHead head;

  QwenLayout(const TensorSource& tensors, const TargetConfig& target, const ModelOptions& how)
      : config(target),
        options(how),
        names(find_name_prefix(tensors)),
        head(output_head(names, target.tie_word_embeddings, tensors)) {}

  std::int64_t context() const { return options.context > 0 ? options.context : config.max_position_embeddings; }
  AttentionBlockShape attention() const {
    return {.hidden = config.hidden_size,
            .heads = config.num_attention_heads,
            .kv = {options.kv_type, config.num_key_value_heads, config.head_dim, options.page_positions},
            .norm_eps = static_cast<float>(config.rms_norm_eps),
            .qk_norm = config.qk_norm,
            .qkv_bias = config.attention_bias_qkv ? BiasRule::kRequired : BiasRule::kNone,
            .o_bias = config.attention_bias_o ? BiasRule::kRequired : BiasRule::kNone};
  }
  std::string attention_module(int layer) const { return names.layer(layer) + "self_attn"; }
  std::string owner(int layer) const {
    return "layer " + std::to_string(layer) + " of " + config.architecture + " needs it";
  }
  std::vector<LinearSpec> mlp(int layer) const {
    return SwigluMlp::specs(names.layer(layer) + "mlp", config.hidden_size, config.intermediate_size, BiasRule::kNone,
                            owner(layer));
  }
  LinearSpec head_spec() const {
    const std::string module = head.name.substr(0, head.name.size() - std::string(".weight").size());
    return {.parts = {{.module = module, .rows = config.vocab_size}},
            .cols = config.hidden_size,
            .owner = "the output head"};
  }
  std::vector<LinearSpec> linears() const {
    std::vector<LinearSpec> specs = {head_spec()};
    for (int i = 0; i < config.num_hidden_layers; ++i) {
      specs.push_back(AttentionBlock::qkv_spec(attention_module(i), attention(), owner(i)));
      specs.push_back(AttentionBlock::o_spec(attention_module(i), attention(), owner(i)));
      for (LinearSpec& spec : mlp(i)) specs.push_back(std::move(spec));
    }
    return specs;
  }
  std::uint64_t linear_bytes(const TensorSource& tensors) const {
    std::uint64_t sum = 0;
    for (const LinearSpec& spec : linears()) sum += held_bytes(spec, tensors, options);
    return sum;
  }
};

struct QwenLayer {
  AlignedBuffer input_norm;
  AttentionBlock attention;
  AlignedBuffer post_attention_norm;
  SwigluMlp mlp;
  std::size_t window_index;

  QwenLayer(WeightLoader& loader, const QwenLayout& layout, int i, std::size_t window)
      : input_norm(norm(loader, layout, i, "input_layernorm")),
        attention(loader, layout.attention_module(i), layout.attention(), layout.owner(i)),
        post_attention_norm(norm(loader, layout, i, "post_attention_layernorm")),
        mlp(loader, layout.mlp(i)),
        window_index(window) {}

  static AlignedBuffer norm(WeightLoader& loader, const QwenLayout& layout, int i, const char* name) {
    return loader.vector(layout.names.layer(i) + name + ".weight", layout.config.hidden_size, layout.owner(i));
  }
};

class QwenModel : public Model {
 public:
  QwenModel(WeightLoader& loader, const QwenLayout& layout, ExecContext& exec)
      : exec_(exec),
        shape_(layout.attention()),
        eps_(static_cast<float>(layout.config.rms_norm_eps)),
        rope_(rope_table(layout.config.rope, layout.context(), exec.pool)),
        pages_(shape_.kv) {
    const TargetConfig& config = layout.config;
    facts_ = {config.architecture, config.num_hidden_layers, config.hidden_size, config.vocab_size, layout.context()};
    embed_tokens_ =
        loader.stored(layout.names.embedding(), config.vocab_size, config.hidden_size, "the token embeddings");
    for (int i = 0; i < config.num_hidden_layers; ++i) {
      layers_.emplace_back(loader, layout, i, window_index(config.sliding_windows[static_cast<std::size_t>(i)]));
    }
    final_norm_ = loader.vector(layout.names.final_norm(), config.hidden_size, "the final norm");
    head_ = loader.linear(layout.head_spec());
  }

  const ModelFacts& facts() const override { return facts_; }

  std::unique_ptr<CacheSet> make_caches() override {
    std::vector<std::unique_ptr<Cache>> caches;
    for (std::size_t i = 0; i < layers_.size(); ++i)
      caches.push_back(std::make_unique<KvCache>(pages_, facts_.context));
    return std::make_unique<CacheSet>(std::move(caches));
  }

  ForwardResult forward(const ForwardBatch& batch) override {
    scratch_.reset();
    CausalBatch rows(batch, windows_, attention_shape(shape_), scratch_, exec_);
    const std::int64_t n = rows.rows();
    const std::int64_t width = facts_.hidden_width;
    const std::int64_t intermediate = layers_.front().mlp.intermediate();
    const Rows x = scratch_.rows(n, width);  // the residual stream
    const Rows normed = scratch_.rows(n, width);
    const Rows delta = scratch_.rows(n, width);
    const Rows gate_up = scratch_.rows(n, 2 * intermediate);
    const AttentionBlock::Scratch attention = {
        scratch_.rows(n, shape_.q_cols() + 2 * shape_.kv_cols()), scratch_.rows(n, shape_.q_cols()),
        scratch_.bytes(packing_bytes(n, std::max({width, shape_.q_cols(), intermediate}), exec_))};
    const Taps taps(batch.taps, n, facts_, scratch_);

    embed(embed_tokens_, rows.ids(), x, exec_);
    rms_norm(x, layers_.front().input_norm.as<float>(), eps_, normed, exec_);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const QwenLayer& layer = layers_[i];
      layer.attention.forward(normed, rows.layer(static_cast<std::int64_t>(i), layer.window_index), rope_, attention,
                              delta, exec_);
      add_rms_norm(delta, x, layer.post_attention_norm.as<float>(), eps_, normed, exec_);
      layer.mlp.forward(normed, gate_up, attention.packing, delta, exec_);
      add_rms_norm(delta, x, norm_after(i).as<float>(), eps_, normed, exec_);
      taps.copy(static_cast<std::int64_t>(i), x);
    }
    rows.close();
    return {normed, taps.rows};
  }

  void unembed(ConstRows hidden, const LogitsSink& sink) override { raw_logits(hidden, 1.0f, 0.0f, sink); }

  void embed_raw(std::span<const std::int32_t> ids, Rows out) override { embed(embed_tokens_, ids, out, exec_); }

  void raw_logits(ConstRows hidden, float multiplier, float cap, const LogitsSink& sink) override {
    head_scratch_.reset();
    std::byte* packing = head_scratch_.bytes(packed_rows_bytes(head_.type, hidden.rows, hidden.cols, exec_));
    const PackedRows packed = pack_rows(hidden, head_.type, packing, exec_);
    drafthorse::unembed(head_, packed, {multiplier, cap, sink.logits, sink.argmax, sink.hash}, head_scratch_, exec_);
  }

  WeightType head_type() const override { return head_.type; }
  void head_row(std::int32_t id, float* values) const override { unpack_row(head_, id, values); }

 private:
  /// Residual rows after the wanted layers, side by side.
  struct Taps {
    std::span<const std::int64_t> wanted;
    Rows rows;

    Taps(std::span<const std::int64_t> layers, std::int64_t count, const ModelFacts& facts, Arena& scratch)
        : wanted(layers) {
      for (std::size_t t = 0; t < layers.size(); ++t) {
        DRAFTHORSE_CHECK(layers[t] >= 0 && layers[t] < facts.layers,
                         "tap " << layers[t] << " of " << facts.layers << " layers");
        DRAFTHORSE_CHECK(t == 0 || layers[t - 1] < layers[t], "taps must ascend: " << layers[t]);
      }
      if (!layers.empty()) rows = scratch.rows(count, static_cast<std::int64_t>(layers.size()) * facts.hidden_width);
    }
    void copy(std::int64_t layer, ConstRows x) const {
      const auto at = std::lower_bound(wanted.begin(), wanted.end(), layer);
      if (at == wanted.end() || *at != layer) return;
      const std::int64_t first = (at - wanted.begin()) * x.cols;
      for (std::int64_t r = 0; r < x.rows; ++r) {
        std::memcpy(rows.row(r) + first, x.row(r), static_cast<std::size_t>(x.cols) * sizeof(float));
      }
    }
  };

  /// The norm that the residual stream meets after layer i.
  const AlignedBuffer& norm_after(std::size_t i) const {
    return i + 1 < layers_.size() ? layers_[i + 1].input_norm : final_norm_;
  }

  std::size_t window_index(std::int64_t window) {
    const auto at = std::find(windows_.begin(), windows_.end(), window);
    const std::size_t index = static_cast<std::size_t>(at - windows_.begin());
    if (at == windows_.end()) windows_.push_back(window);
    return index;
  }

  ExecContext& exec_;
  ModelFacts facts_;
  AttentionBlockShape shape_;
  float eps_;
  RopeTable rope_;
  PagePool pages_;
  std::vector<std::int64_t> windows_;  // distinct, 0 = full
  StoredMatrix embed_tokens_;
  std::vector<QwenLayer> layers_;
  AlignedBuffer final_norm_;
  PackedMatrix head_;
  Arena scratch_;       // of forward; its results live here
  Arena head_scratch_;  // of one projection to logits
};

}  // namespace

std::unique_ptr<Model> load_qwen(const TensorSource& tensors, const TargetConfig& config, const ModelOptions& options,
                                 ExecContext& exec) {
  const QwenLayout layout(tensors, config, options);
  WeightLoader loader(tensors, options, layout.linear_bytes(tensors), exec);
  auto model = std::make_unique<QwenModel>(loader, layout, exec);
  if (!layout.head.ignored.empty()) loader.used().insert(layout.head.ignored);
  require_all_used(tensors, loader.used());
  return model;
}

LinearInventory qwen_linears(const TensorSource& tensors, const TargetConfig& config) {
  const ModelOptions options;
  const QwenLayout layout(tensors, config, options);
  LinearInventory inventory{.linears = layout.linears(), .also_plain = {layout.names.embedding()}, .unused = {}};
  if (!layout.head.ignored.empty()) inventory.unused.insert(layout.head.ignored);
  return inventory;
}

MemoryNeed qwen_memory(const TensorSource& tensors, const TargetConfig& config, const ModelOptions& options,
                       std::int64_t rows) {
  const QwenLayout layout(tensors, config, options);
  // Drafts tap a handful of layers.
  const std::int64_t taps = std::min(config.num_hidden_layers, 8);
  return memory_need({.linear_bytes = layout.linear_bytes(tensors),
                      .layers = config.num_hidden_layers,
                      .intermediate = config.intermediate_size,
                      .feature_width = taps * config.hidden_size,
                      .rotary_dims = config.rope.rotary_dims,
                      .context = layout.context(),
                      .attention = layout.attention()},
                     rows);
}

}  // namespace drafthorse
