#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/layer_type.h"
#include "checkpoint/rope_config.h"

namespace drafthorse {

/// Block-diffusion draft families.
enum class DraftFamily : std::uint8_t {
  kDflash,       ///< DFlashDraftModel
  kLaguna,       ///< DFlashLagunaForCausalLM: context rows also pass through each layer's input norm
  kMuseGlimmer,  ///< MuseGlimmerAssistantModel: DFlash with other tensor names and an inclusive window
  kDflash2,      ///< DFlash2DraftModel: convolutions around every sublayer, and a candidate selector
};

/// The keys that only DFlash2 has. All > 0 for kDflash2, all 0 otherwise.
struct Dflash2Config {
  int conv_kernel_size = 0;
  int conv_group_size = 0;  ///< divides hidden_size
  int selector_rank = 0;
  int selector_top_k = 0;
};

/// The configuration of a draft model, complete and checked as far as it can be without its target.
struct DraftConfig {
  std::string source;        ///< the file it came from, for messages
  std::string architecture;  ///< as the file spells it
  DraftFamily family = DraftFamily::kDflash;

  int hidden_size = 0;
  int num_hidden_layers = 0;
  int num_attention_heads = 0;
  int num_key_value_heads = 0;  ///< divides num_attention_heads
  int head_dim = 0;             ///< even
  int intermediate_size = 0;
  double rms_norm_eps = 0.0;  ///< of every norm of the draft
  RopeConfig rope;            ///< over all head dims

  int block_size = 0;              ///< trained block length, the anchor included; >= 2: at most block_size - 1 drafts
  std::int64_t mask_token_id = 0;  ///< checked against the target by check_pairing
  std::vector<int> target_layer_ids;  ///< taps: strictly ascending, 0-based, the residual stream after that layer
  int num_target_layers = 0;          ///< 0: not declared
  int vocab_size = 0;                 ///< 0: not declared

  std::vector<LayerType> layer_types;  ///< one per layer
  std::vector<int> sliding_windows;    ///< one per layer; 0 in full layers
  /// With window W, a key at distance d is visible iff d < W, or d <= W when inclusive.
  bool window_inclusive = false;
  /// Declared causality of every layer; nothing: sliding layers are causal, full layers are not. See causal_in().
  std::optional<bool> causal;

  double output_multiplier = 1.0;        ///< of draft logits; > 0
  double final_logit_softcapping = 0.0;  ///< cap * tanh(x / cap) after the multiplier; 0: off
  double input_embedding_scale = 1.0;    ///< of the embeddings of block tokens; > 0
  Dflash2Config dflash2;

  /// Whether block rows of `layer` see only keys at or before themselves.
  bool causal_in(int layer) const {
    return causal.value_or(layer_types[static_cast<std::size_t>(layer)] == LayerType::kSlidingAttention);
  }
  int taps() const { return static_cast<int>(target_layer_ids.size()); }
};

/// Checks and completes a parsed config.json of a draft; `source` names it in errors. Every key may stand at the top
/// level or in dflash_config, which wins. Throws Error naming file, key and value; drafts that carry one of these
/// architecture names but need another network are refused by the key that says so.
DraftConfig parse_draft_config(const Json& config, const std::string& source);
/// parse_draft_config of config.json in `folder`.
DraftConfig read_draft_config(const std::string& folder);

/// What a draft must know of the target it is paired with.
struct TargetFacts {
  int layers = 0;
  int hidden_width = 0;  ///< columns of the embedding table
  int vocab_width = 0;   ///< width of the logits, padding rows included
};

/// Throws Error naming both values when `draft` was not made for such a target: number of layers, taps, hidden width,
/// vocabulary, mask token. Cheap: call it before any weight is read. `target_source` names the target in errors.
void check_pairing(const DraftConfig& draft, const TargetFacts& target, const std::string& target_source);
/// What is legal but doubtful about the pair, one line each; to be shown to the user.
std::vector<std::string> pairing_warnings(const DraftConfig& draft, const TargetFacts& target);

}  // namespace drafthorse
