#include "checkpoint/draft_config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "checkpoint/config_keys.h"
#include "checkpoint/config_rules.h"
#include "checkpoint/folder.h"

namespace drafthorse {
namespace {

constexpr int kMaxBlock = 4096;

struct Family {
  std::string_view architecture;
  DraftFamily family;
};
constexpr std::array<Family, 4> kFamilies = {{
    {"DFlashDraftModel", DraftFamily::kDflash},
    {"DFlashLagunaForCausalLM", DraftFamily::kLaguna},
    {"MuseGlimmerAssistantModel", DraftFamily::kMuseGlimmer},
    {"DFlash2DraftModel", DraftFamily::kDflash2},
}};

DraftFamily find_family(const JsonObject& top) {
  const DeclaredArchitecture declared = declared_architecture(top);
  std::string supported;
  for (const Family& family : kFamilies) {
    if (declared.name == family.architecture) return family.family;
    supported += (supported.empty() ? "" : ", ") + std::string(family.architecture);
  }
  top.fail(declared.key, "not supported as a draft; supported are " + supported);
}

/// Relatives that share an architecture name with the networks built here but compute something else. Each object is
/// looked at on its own: a key in one does not excuse the other.
void refuse_relatives(const ConfigKeys& config) {
  for (const JsonObject& object : config.objects()) {
    if (const auto projector = object.string("projector_type"); projector && *projector != "dflash") {
      object.fail("projector_type", "a draft of this kind is another network and not supported");
    }
    for (const char* key : {"sample_from_anchor", "shift_label", "use_confidence_head"}) {
      if (object.boolean(key).value_or(false)) object.fail(key, "drafts trained this way are not supported");
    }
    for (const char* key : {"markov_rank", "linear_context"}) {
      const Json* value = object.find(key);
      if (value != nullptr && *value != false)
        object.fail(key, "drafts with this part are another network and not supported");
    }
  }
  if (const auto draft_vocab = config.integer("draft_vocab_size");
      draft_vocab && draft_vocab != config.integer("vocab_size")) {
    const Json* vocab = config.where("vocab_size").find("vocab_size");
    config.fail("draft_vocab_size", "a draft with a vocabulary of its own (vocab_size = " +
                                        (vocab == nullptr ? "absent" : brief(*vocab)) + ") is not supported");
  }
}

/// A whole number >= 0; 0 when absent.
int parse_count(const ConfigKeys& config, const std::string& key, std::int64_t limit) {
  const std::int64_t value = config.integer(key).value_or(0);
  if (value < 0 || value > limit) config.fail(key, "must be from 0 to " + std::to_string(limit));
  return static_cast<int>(value);
}

/// The larger of what the objects say, since tools that rewrite one of them leave the other at its default.
int parse_target_layers(const ConfigKeys& config) {
  int layers = 0;
  for (const JsonObject& object : config.objects()) {
    layers = std::max(layers, parse_count(ConfigKeys({object}), "num_target_layers", kMaxLayers));
  }
  return layers;
}

std::vector<int> parse_taps(const ConfigKeys& config, int target_layers) {
  const std::string key = "target_layer_ids";
  const auto ids = config.integers(key);
  if (!ids) config.fail(key, "missing; which target layers feed the draft cannot be guessed");
  if (ids->empty()) config.fail(key, "empty; a draft needs at least one target layer");
  std::int64_t previous = -1;
  std::vector<int> taps;
  for (const std::int64_t id : *ids) {
    if (id < 0) config.fail(key, "layer " + std::to_string(id) + " is negative");
    if (id <= previous) {
      config.fail(key, "must be strictly ascending, " + std::to_string(id) + " follows " + std::to_string(previous));
    }
    const std::int64_t limit = target_layers > 0 ? target_layers : kMaxLayers;
    if (id >= limit) {
      config.fail(key, "layer " + std::to_string(id) + " does not exist in a target of " +
                           (target_layers > 0 ? "num_target_layers = " : "at most ") + std::to_string(limit) +
                           " layers");
    }
    previous = id;
    taps.push_back(static_cast<int>(id));
  }
  return taps;
}

/// dflash_config is asked first, under either name, then the top level.
std::optional<bool> parse_causal(const ConfigKeys& config) {
  for (const JsonObject& object : config.objects()) {
    for (const char* key : {"causal", "is_causal"}) {
      if (const auto value = object.boolean(key)) return value;
    }
  }
  return std::nullopt;
}

Dflash2Config parse_dflash2(const ConfigKeys& config, const DraftConfig& draft) {
  Dflash2Config extra;
  extra.conv_kernel_size = config.positive("conv_kernel_size", kMaxBlock);
  extra.conv_group_size = config.positive("conv_group_size", kMaxWidth);
  if (draft.hidden_size % extra.conv_group_size != 0) {
    config.fail("conv_group_size", "does not divide hidden_size = " + std::to_string(draft.hidden_size));
  }
  extra.selector_rank = config.positive("selector_rank", kMaxWidth);
  extra.selector_top_k = config.positive("selector_top_k", kMaxVocab);
  if (draft.vocab_size > 0 && extra.selector_top_k > draft.vocab_size) {
    config.fail("selector_top_k", "is more than vocab_size = " + std::to_string(draft.vocab_size));
  }
  return extra;
}

double parse_soft_cap(const ConfigKeys& config) {
  const double cap = config.number("final_logit_softcapping").value_or(0);
  if (cap < 0) config.fail("final_logit_softcapping", "must be 0 (off) or above");
  return cap;
}

}  // namespace

DraftConfig parse_draft_config(const Json& config, const std::string& source) {
  const JsonObject top(config, source);
  DraftConfig draft;
  draft.source = source;
  draft.family = find_family(top);
  draft.architecture = declared_architecture(top).name;
  std::vector<JsonObject> objects;
  if (const auto nested = top.object("dflash_config")) objects.push_back(*nested);
  objects.push_back(top);
  const ConfigKeys keys(std::move(objects));
  refuse_quantization(top);
  refuse_relatives(keys);

  draft.hidden_size = keys.positive("hidden_size", kMaxWidth);
  draft.num_hidden_layers = keys.positive("num_hidden_layers", kMaxLayers);
  draft.num_attention_heads = keys.positive("num_attention_heads", kMaxWidth);
  draft.num_key_value_heads = keys.positive("num_key_value_heads", kMaxWidth);
  draft.head_dim = keys.positive("head_dim", kMaxWidth);
  draft.intermediate_size = keys.positive("intermediate_size", kMaxWidth);
  draft.vocab_size = parse_count(keys, "vocab_size", kMaxVocab);
  check_sizes(keys,
              {draft.hidden_size, draft.num_attention_heads, draft.num_key_value_heads, draft.head_dim,
               draft.intermediate_size},
              draft.vocab_size);
  draft.rms_norm_eps = keys.positive_number("rms_norm_eps");
  draft.rope = parse_rope(keys, draft.head_dim, {});
  if (draft.rope.rotary_dims != draft.head_dim) {
    throw Error(source + ": partial_rotary_factor: rotates " + std::to_string(draft.rope.rotary_dims) + " of " +
                std::to_string(draft.head_dim) + " head dims; drafts rotate all of them");
  }
  draft.rope.interleaved = keys.boolean("rope_interleaved").value_or(false);
  require_activation(keys, "silu");

  draft.block_size = keys.positive("block_size", kMaxBlock);
  if (draft.block_size < 2) keys.fail("block_size", "must be 2 or more: it counts the anchor");
  const auto mask = keys.integer("mask_token_id");
  if (!mask) keys.fail("mask_token_id", "missing; the draft cannot run without it");
  draft.mask_token_id = *mask;
  draft.num_target_layers = parse_target_layers(keys);
  draft.target_layer_ids = parse_taps(keys, draft.num_target_layers);

  const std::vector<LayerType> all_full(static_cast<std::size_t>(draft.num_hidden_layers), LayerType::kFullAttention);
  draft.layer_types = parse_layer_types(keys, draft.num_hidden_layers, all_full);
  draft.sliding_windows = parse_sliding_windows(keys, draft.layer_types);
  draft.causal = parse_causal(keys);
  if (draft.family == DraftFamily::kMuseGlimmer) {
    draft.window_inclusive = true;
    draft.causal = draft.causal.value_or(false);
  }
  draft.output_multiplier = keys.positive_number("output_multiplier", 1.0);
  draft.final_logit_softcapping = parse_soft_cap(keys);
  draft.input_embedding_scale = keys.positive_number("input_embedding_scale", 1.0);
  if (draft.family == DraftFamily::kDflash2) draft.dflash2 = parse_dflash2(keys, draft);
  return draft;
}

DraftConfig read_draft_config(const std::string& folder) {
  const std::string file = open_model_folder(folder).config;
  return parse_draft_config(read_json_file(file), file);
}

}  // namespace drafthorse
