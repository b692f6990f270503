#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/layer_type.h"
#include "checkpoint/rope_config.h"

namespace drafthorse {

/// Network families a target may belong to; each has one file in model/arch.
enum class TargetFamily : std::uint8_t {
  kQwen2,  ///< Qwen2ForCausalLM (Qwen2, Qwen2.5, Qwen2.5-Coder)
  kQwen3,  ///< Qwen3ForCausalLM (Qwen3 dense)
};

/// The configuration of a target model, complete (defaults filled in) and checked. Products of any two of the sizes
/// below fit in 2^40, so shapes computed from them do not overflow std::int64_t.
struct TargetConfig {
  std::string source;        ///< the file it came from, for messages
  std::string architecture;  ///< as the file spells it
  TargetFamily family = TargetFamily::kQwen3;

  int hidden_size = 0;
  int num_hidden_layers = 0;  ///< 1..1024
  int vocab_size = 0;         ///< rows of the embedding table and width of the logits, 1..2^24
  int num_attention_heads = 0;
  int num_key_value_heads = 0;  ///< divides num_attention_heads
  int head_dim = 0;             ///< even
  int intermediate_size = 0;
  double rms_norm_eps = 0.0;  ///< > 0
  int max_position_embeddings = 0;
  RopeConfig rope;

  bool attention_bias_qkv = false;  ///< q_proj, k_proj and v_proj have a bias
  bool attention_bias_o = false;    ///< o_proj has a bias
  bool qk_norm = false;             ///< q_norm and k_norm per head, before rope

  /// Logits by the embedding table (true), by lm_head (false), or whichever the file has (nothing). See output_head().
  std::optional<bool> tie_word_embeddings;

  std::vector<LayerType> layer_types;  ///< one per layer
  std::vector<int> sliding_windows;    ///< one per layer: keys visible to a query, itself included; 0 in full layers
};

/// Checks and completes a parsed config.json; `source` names it in errors. Throws Error naming file, key and value; an
/// architecture that is not supported is named together with those that are.
TargetConfig parse_target_config(const Json& config, const std::string& source);
/// parse_target_config of config.json in `folder`.
TargetConfig read_target_config(const std::string& folder);

}  // namespace drafthorse
