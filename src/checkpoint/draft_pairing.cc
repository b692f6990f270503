#include "base/error.h"
#include "checkpoint/draft_config.h"

namespace drafthorse {

void check_pairing(const DraftConfig& draft, const TargetFacts& target, const std::string& target_source) {
  const auto refuse = [&](const std::string& key, std::int64_t value, const std::string& what) {
    throw Error(draft.source + ": " + key + " = " + std::to_string(value) + ": " + what + " (" + target_source +
                "); this draft was made for another target");
  };
  if (draft.num_target_layers != 0 && draft.num_target_layers != target.layers) {
    refuse("num_target_layers", draft.num_target_layers, "the target has " + std::to_string(target.layers) + " layers");
  }
  if (draft.target_layer_ids.back() >= target.layers) {
    refuse("target_layer_ids ending in", draft.target_layer_ids.back(),
           "the target has layers 0 to " + std::to_string(target.layers - 1));
  }
  if (draft.hidden_size != target.hidden_width) {
    refuse("hidden_size", draft.hidden_size,
           "the target's embeddings are " + std::to_string(target.hidden_width) + " wide");
  }
  if (draft.vocab_size != 0 && draft.vocab_size != target.vocab_width) {
    refuse("vocab_size", draft.vocab_size, "the target's logits are " + std::to_string(target.vocab_width) + " wide");
  }
  if (draft.mask_token_id < 0 || draft.mask_token_id >= target.vocab_width) {
    refuse("mask_token_id", draft.mask_token_id,
           "the target's vocabulary has ids 0 to " + std::to_string(target.vocab_width - 1));
  }
  if (draft.dflash2.selector_top_k > target.vocab_width) {
    refuse("selector_top_k", draft.dflash2.selector_top_k,
           "the target's logits are only " + std::to_string(target.vocab_width) + " wide");
  }
}

std::vector<std::string> pairing_warnings(const DraftConfig& draft, const TargetFacts& target) {
  std::vector<std::string> warnings;
  if (draft.target_layer_ids.back() == target.layers - 1) {
    warnings.push_back(draft.source + ": target_layer_ids ends in " + std::to_string(target.layers - 1) +
                       ", the target's last layer: some training code reads it after the final norm, here it is read "
                       "before; a low acceptance rate may come from this");
  }
  return warnings;
}

}  // namespace drafthorse
