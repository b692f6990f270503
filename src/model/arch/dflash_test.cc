#include "model/arch/dflash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/random.h"
#include "support/error_text.h"
#include "support/loaded_network.h"
#include "support/naive_draft.h"
#include "support/reference_values.h"
#include "support/temp_folder.h"
#include "support/test_machine.h"
#include "support/tiny_checkpoint.h"

namespace drafthorse {
namespace {

constexpr double kBound = 2e-4;

/// A tiny target, a tiny draft, and the draft's naive twin. A test edits `draft` and `naive` alike before load().
class Dflash : public testing::Test {
 protected:
  Dflash() {
    tiny_target({}).write(target_folder_.path());
    target_ = std::make_unique<LoadedTarget>(target_folder_.path(), exact_options(), test_exec());
  }

  void make(const TinyDraftShape& shape) {
    shape_ = shape;
    draft_ = tiny_draft(shape);
    naive_ = {.layers = shape.layers,
              .hidden = shape.hidden,
              .heads = shape.heads,
              .kv_heads = shape.kv_heads,
              .head_dim = shape.head_dim,
              .windows = shape.windows,
              .causal = {},
              .tensors = {}};
    naive_.windows.resize(static_cast<std::size_t>(shape.layers), 0);
    for (const int window : naive_.windows) naive_.causal.push_back(window > 0);
    copy_tensors();
  }
  /// The twin has the tensors that `draft_` has now.
  void copy_tensors() {
    naive_.tensors.clear();
    for (const auto& [name, tensor] : draft_.tensors)
      naive_.tensors[name] = {tensor.values.begin(), tensor.values.end()};
  }

  LoadedDraft load(const ModelOptions& options = exact_options()) {
    draft_.write(draft_folder_.path());
    return LoadedDraft(draft_folder_.path(), *target_->model, options, test_exec());
  }

  RowCopy random_features(std::int64_t rows) const {
    RowCopy features;
    std::vector<float> row(shape_.taps.size() * static_cast<std::size_t>(shape_.hidden));
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::size_t i = 0; i < row.size(); ++i)
        row[i] = static_cast<float>(2.0 * draw_uniform(i, static_cast<std::uint64_t>(r), Purpose::kToken) - 1.0);
      const auto cols = static_cast<std::int64_t>(row.size());
      features.append({row.data(), 1, cols, cols});
    }
    return features;
  }
  std::vector<std::int32_t> block_ids(std::size_t rows) const {
    std::vector<std::int32_t> ids(rows, shape_.mask_token_id);
    ids[0] = 17;
    return ids;
  }
  static NaiveRows doubles(const RowCopy& rows) {
    NaiveRows copy;
    for (std::int64_t r = 0; r < rows.rows; ++r) copy.emplace_back(rows.row(r).begin(), rows.row(r).end());
    return copy;
  }
  RowCopy embeddings(std::span<const std::int32_t> ids) {
    RowCopy rows;
    rows.rows = static_cast<std::int64_t>(ids.size());
    rows.cols = shape_.hidden;
    rows.values.resize(ids.size() * static_cast<std::size_t>(shape_.hidden));
    target_->model->embed_raw(ids, {rows.values.data(), rows.rows, rows.cols, rows.cols});
    return rows;
  }
  RowCopy twin(const RowCopy& features, std::span<const std::int32_t> ids) {
    RowCopy rows;
    for (const std::vector<double>& row : naive_.block(doubles(features), doubles(embeddings(ids)))) {
      const std::vector<float> single(row.begin(), row.end());
      rows.append({single.data(), 1, shape_.hidden, shape_.hidden});
    }
    return rows;
  }

  /// Whole blocks and short ones, after contexts of several lengths, against the twin.
  void expect_like_twin(const std::vector<std::int64_t>& contexts = {5, 40}, const std::string& what = "") {
    LoadedDraft draft = load();
    for (const std::int64_t context : contexts) {
      const RowCopy features = random_features(context);
      for (const std::size_t rows : {static_cast<std::size_t>(shape_.block_size), std::size_t{3}}) {
        const auto ids = block_ids(rows);
        const auto caches = draft.model->make_caches();
        const RowCopy hidden(draft.model->forward(features.view(), ids, *caches));
        expect_close(hidden, twin(features, ids), kBound,
                     what + " " + std::to_string(rows) + " rows after " + std::to_string(context));
      }
    }
  }

  void expect_load_error(std::initializer_list<const char*> parts) {
    expect_error([&] { load(); }, parts);
  }

  TempFolder target_folder_;
  TempFolder draft_folder_;
  std::unique_ptr<LoadedTarget> target_;
  TinyDraftShape shape_;
  TinyCheckpoint draft_;
  NaiveDraft naive_;
};

TEST_F(Dflash, APlainDraftIsLikeItsTwin) {
  make({});
  expect_like_twin({1, 31, 32, 70});
}

TEST_F(Dflash, ABlockWithoutAnyContextSeesItself) {
  make({});
  LoadedDraft draft = load();
  const auto caches = draft.model->make_caches();
  const auto ids = block_ids(8);
  expect_close(RowCopy(draft.model->forward({}, ids, *caches)), twin({}, ids), kBound, "no context");
}

TEST_F(Dflash, WindowsAndCausalityAreThoseOfEachLayerToTheSlot) {
  for (const std::optional<bool> causal :
       {std::optional<bool>(), std::optional<bool>(true), std::optional<bool>(false)}) {
    make({.layers = 3, .windows = {8, 8, 0}});
    if (causal) {
      draft_.config["is_causal"] = *causal;
      naive_.causal = {*causal, *causal, *causal};
    }
    expect_like_twin({7, 8, 9, 24}, causal ? (*causal ? "causal" : "not causal") : "causality not declared");
  }
}

TEST_F(Dflash, AWindowSmallerThanTheBlockBoundsBothSides) {
  make({.layers = 2, .windows = {3, 0}});
  draft_.config["is_causal"] = false;
  naive_.causal = {false, false};
  expect_like_twin({2, 3, 24}, "window 3");
}

TEST_F(Dflash, LagunaNormsContextRowsInEachLayer) {
  make({.architecture = "DFlashLagunaForCausalLM"});
  naive_.laguna = true;
  expect_like_twin();
}

TEST_F(Dflash, MuseGlimmerHasAnInclusiveWindowThatIsNotCausal) {
  make({.architecture = "MuseGlimmerAssistantModel", .layers = 2, .windows = {8, 0}});
  naive_.window_inclusive = true;
  naive_.causal = {false, false};
  expect_like_twin({7, 8, 9, 24}, "plain layout");
}

TEST_F(Dflash, MuseGlimmersOwnLayoutIsRead) {
  for (const char* prefix : {"", "model."}) {
    make({.architecture = "MuseGlimmerAssistantModel", .layers = 2, .windows = {8, 0}});
    naive_.window_inclusive = true;
    naive_.causal = {false, false};
    TinyCheckpoint renamed = draft_;
    for (const auto& [name, tensor] : draft_.tensors) {
      std::string own = name;
      if (name == "fc.weight") own = "encoder.fc.weight";
      if (name == "hidden_norm.weight") own = "encoder.output_norm_enc.weight";
      renamed.tensors.erase(name);
      renamed.tensors[prefix + own] = tensor;
    }
    draft_ = renamed;
    expect_like_twin({9}, std::string("prefix \"") + prefix + "\"");
  }
}

TEST_F(Dflash, TheBundledPrefixIsFound) {
  make({});
  TinyCheckpoint renamed = draft_;
  for (const auto& [name, tensor] : draft_.tensors) renamed.rename(name, "draft." + name);
  draft_ = renamed;
  expect_like_twin({9});
}

TEST_F(Dflash, HeadsAreGatedBySoftplus) {
  make({});
  for (int i = 0; i < shape_.layers; ++i) {
    draft_.add("layers." + std::to_string(i) + ".self_attn.g_proj.weight", {shape_.heads, shape_.hidden}, 0.0f, 0.4f);
  }
  copy_tensors();
  expect_like_twin();
}

TEST_F(Dflash, TapsAreNormedEachByItsOwnWeight) {
  make({.taps = {0, 1, 2}});
  for (int t = 0; t < 3; ++t)
    draft_.add("aux_hidden_norms." + std::to_string(t) + ".weight", {shape_.hidden}, 1.0f, 0.5f);
  copy_tensors();
  expect_like_twin();
}

TEST_F(Dflash, AFusedProjectionIsThatOfItsParts) {
  make({});
  draft_.add("layers.1.self_attn.q_proj.bias", {shape_.heads * shape_.head_dim}, 0.0f, 0.5f);
  draft_.add("layers.1.self_attn.k_proj.bias", {shape_.kv_heads * shape_.head_dim}, 0.0f, 0.5f);
  draft_.add("layers.1.self_attn.v_proj.bias", {shape_.kv_heads * shape_.head_dim}, 0.0f, 0.5f);
  copy_tensors();
  for (int i = 0; i < shape_.layers; ++i) {
    const std::string at = "layers." + std::to_string(i) + ".self_attn.";
    draft_.fuse({at + "q_proj.weight", at + "k_proj.weight", at + "v_proj.weight"}, at + "qkv_proj.weight");
    if (i == 1) draft_.fuse({at + "q_proj.bias", at + "k_proj.bias", at + "v_proj.bias"}, at + "qkv_proj.bias");
  }
  expect_like_twin();
}

TEST_F(Dflash, LinearLayersMayHaveBiases) {
  make({});
  draft_.add("fc.bias", {shape_.hidden}, 0.0f, 0.5f);
  draft_.add("layers.0.self_attn.v_proj.bias", {shape_.kv_heads * shape_.head_dim}, 0.0f,
             0.5f);  // k_proj, stacked with it, has none
  draft_.add("layers.0.self_attn.o_proj.bias", {shape_.hidden}, 0.0f, 0.5f);
  draft_.add("layers.1.mlp.up_proj.bias", {shape_.intermediate}, 0.0f, 0.5f);
  draft_.add("layers.1.mlp.down_proj.bias", {shape_.hidden}, 0.0f, 0.5f);
  copy_tensors();
  expect_like_twin();
}

TEST_F(Dflash, RotaryPairsMayBeInterleaved) {
  make({});
  draft_.config["rope_interleaved"] = true;
  naive_.interleaved = true;
  expect_like_twin();
}

TEST_F(Dflash, BlockEmbeddingsAreScaled) {
  make({});
  draft_.config["input_embedding_scale"] = 3.5;
  naive_.embedding_scale = 3.5;
  expect_like_twin();
}

TEST_F(Dflash, OddSizesWork) {
  make({.layers = 1, .heads = 3, .kv_heads = 1, .head_dim = 6, .intermediate = 50, .block_size = 5});
  expect_like_twin();
}

TEST_F(Dflash, DraftLogitsAreScaledThenCapped) {
  make({});
  draft_.config["output_multiplier"] = 0.25;
  draft_.config["final_logit_softcapping"] = 2.0;
  LoadedDraft draft = load();
  const auto caches = draft.model->make_caches();
  const RowCopy hidden(draft.model->forward(random_features(4).view(), block_ids(8), *caches));
  const RowCopy raw = logits_of(*target_->model, hidden.view(), shape_.vocab);
  RowCopy expected = raw;
  for (float& v : expected.values) v = static_cast<float>(2.0 * std::tanh(0.25 * v / 2.0));
  expect_close(logits_of(*draft.model, hidden.view(), shape_.vocab), expected, 1e-5, "capped logits");
}

TEST_F(Dflash, ABlockLeavesNothingBehind) {
  make({.layers = 3, .windows = {8, 8, 0}});
  LoadedDraft draft = load();
  const RowCopy features = random_features(40);
  const auto ids = block_ids(8);
  const auto clean = draft.model->make_caches();
  const RowCopy expected(draft.model->forward(features.view(), ids, *clean));
  EXPECT_EQ(clean->offset(), 40);
  EXPECT_EQ(RowCopy(draft.model->forward({}, ids, *clean)), expected);

  const auto pieces = draft.model->make_caches();
  for (std::int64_t at = 0; at < 39; ++at) {
    const auto other = block_ids(1 + static_cast<std::size_t>(at) % 8);
    draft.model->forward(features.view().slice(at, at + 1), other, *pieces);
  }
  EXPECT_EQ(RowCopy(draft.model->forward(features.view().slice(39, 40), ids, *pieces)), expected);
}

TEST_F(Dflash, AContextOnlyCallReturnsNothingAndIsUndoneByItsTransaction) {
  make({});
  LoadedDraft draft = load();
  const RowCopy features = random_features(40);
  const auto ids = block_ids(8);
  const auto expected_caches = draft.model->make_caches();
  const RowCopy expected(draft.model->forward(features.view().slice(0, 33), ids, *expected_caches));
  const auto caches = draft.model->make_caches();
  EXPECT_EQ(draft.model->forward(features.view().slice(0, 33), {}, *caches).rows, 0);
  {
    CacheTransaction guess(*caches, 7);
    draft.model->forward(features.view().slice(33, 40), {}, *caches);
    EXPECT_EQ(caches->offset(), 40);
  }
  EXPECT_EQ(caches->offset(), 33);
  EXPECT_EQ(RowCopy(draft.model->forward({}, ids, *caches)), expected);
}

TEST_F(Dflash, CachesRoundedToBf16AndQuantisedWeightsStayNear) {
  make({});
  ModelOptions options = exact_options();
  options.kv_type = ElementType::kBF16;
  options.weights = WeightType::kQ8_0;
  LoadedDraft draft = load(options);
  const RowCopy features = random_features(40);
  const auto ids = block_ids(8);
  const auto caches = draft.model->make_caches();
  expect_close(RowCopy(draft.model->forward(features.view(), ids, *caches)), twin(features, ids), 0.25, "q8_0");
}

TEST_F(Dflash, AnOwnEmbeddingAndHeadArePassedOver) {
  make({});
  draft_.add("embed_tokens.weight", {shape_.vocab, shape_.hidden}, 0.0f, 1.0f);
  draft_.add("lm_head.weight", {shape_.vocab, shape_.hidden}, 0.0f, 1.0f);
  expect_like_twin({9});
}

TEST_F(Dflash, FactsAreThoseOfTheConfig) {
  make({.block_size = 6, .mask_token_id = 300, .taps = {1, 2}});
  LoadedDraft draft = load();
  EXPECT_EQ(draft.model->facts().block_size, 6);
  EXPECT_EQ(draft.model->facts().mask_token_id, 300);
  EXPECT_EQ(draft.model->facts().taps, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(draft.model->facts().feature_width, 128);
}

TEST_F(Dflash, EachMissingOrWrongTensorHasItsOwnMessage) {
  const auto without = [&](const std::string& name) {
    make({.taps = {0, 1}});
    draft_.tensors.erase(name);
  };
  without("fc.weight");
  expect_load_error({"fc.weight", "missing"});
  without("hidden_norm.weight");
  expect_load_error({"hidden_norm.weight", "missing"});
  without("norm.weight");
  expect_load_error({"norm.weight", "missing"});
  make({.taps = {0, 1}});
  draft_.add("aux_hidden_norms.0.weight", {shape_.hidden}, 1.0f, 0.1f);
  expect_load_error({"1 tensors", "aux_hidden_norms", "2 taps"});
  draft_.add("aux_hidden_norms.2.weight", {shape_.hidden}, 1.0f, 0.1f);
  expect_load_error({"aux_hidden_norms", "numbered from 0"});
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm"}) {
    const std::string full = std::string("layers.1.self_attn.") + name + ".weight";
    without(full);
    expect_load_error({full.c_str(), "missing", "the attention of draft layer 1 needs"});
  }
  for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
    const std::string full = std::string("layers.1.mlp.") + name + ".weight";
    without(full);
    expect_load_error({full.c_str(), "missing", "the MLP of draft layer 1 needs"});
  }
  for (const char* name : {"input_layernorm", "post_attention_layernorm"}) {
    const std::string full = std::string("layers.0.") + name + ".weight";
    without(full);
    expect_load_error({full.c_str(), "missing", "the norms of draft layer 0"});
  }
  make({.taps = {0, 1}});
  draft_.tensors["fc.weight"].shape = {128, 64};
  expect_load_error({"fc.weight", "[128, 64]", "[64, 128]"});
  make({});
  draft_.write(draft_folder_.path());
  std::string file =
      read_text_file(draft_folder_ / "model.safetensors");  // v_proj keeps its bytes and is said to be whole numbers
  const std::size_t at = file.find("layers.0.self_attn.v_proj.weight");
  file.replace(file.find("F32", at), 3, "I32");
  draft_folder_.write("model.safetensors", file);
  expect_error(
      [&] { LoadedDraft(draft_folder_.path(), *target_->model, exact_options(), test_exec()); },
      {"layers.0.self_attn.v_proj.weight", "I32", "cannot be stacked", "layers.0.self_attn.k_proj.weight", "F32"});
  make({});
  draft_.add("layers.0.self_attn.sinks", {shape_.heads}, 0.0f, 1.0f);
  expect_load_error({"layers.0.self_attn.sinks", "not part of"});
  make({});
  draft_.tensors["layers.0.mlp.down_proj.weight"].values[5] = std::nanf("");
  expect_load_error({"layers.0.mlp.down_proj.weight"});
  make({});
  draft_.tensors["norm.weight"].values[5] = INFINITY;
  expect_load_error({"norm.weight", "not a finite number"});
}

TEST_F(Dflash, AForeignTargetIsRefusedBeforeAnyWeightIsRead) {
  make({.target_layers = 5});
  draft_.tensors.clear();
  draft_.add("unrelated.weight", {4}, 0.0f, 1.0f);
  expect_load_error({"num_target_layers", "5", "3"});
}

TEST_F(Dflash, Dflash2IsAnnounced) {
  make({.architecture = "DFlash2DraftModel"});
  draft_.config["dflash_config"]["conv_kernel_size"] = 2;
  draft_.config["dflash_config"]["conv_group_size"] = 16;
  draft_.config["dflash_config"]["selector_rank"] = 8;
  draft_.config["dflash_config"]["selector_top_k"] = 4;
  expect_load_error({"DFlash2DraftModel", "later version"});
}

}  // namespace
}  // namespace drafthorse
