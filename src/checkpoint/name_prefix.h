#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_source.h"

namespace drafthorse {

/// Where a target's text network sits among the names of its file.
struct NamePrefix {
  std::string text;  ///< P of "P embed_tokens.weight", "P layers.{i}.", "P norm.weight"; ends in a dot or is empty
  std::string head;  ///< module path of the output head ("lm_head"); empty when the file has none

  std::string embedding() const { return text + "embed_tokens.weight"; }
  std::string final_norm() const { return text + "norm.weight"; }
  /// "P layers.{index}."
  std::string layer(int index) const { return text + "layers." + std::to_string(index) + "."; }
};

/// Throws Error listing the names tried when there is no embedding table under any of the known prefixes.
NamePrefix find_name_prefix(const TensorSource& source);

/// Which tensor makes the logits.
struct OutputHead {
  bool tied = false;
  std::string name;     ///< of the tensor to use: the embedding table or "<head>.weight"
  std::string ignored;  ///< a head tensor that is present and, being tied, not used; "" otherwise
};

/// `tie` is the config's tie_word_embeddings: true uses the embedding table, false the head (an Error when the file has
/// none), nothing whichever the file has.
OutputHead output_head(const NamePrefix& prefix, std::optional<bool> tie, const TensorSource& source);

/// Whether a text-only loader passes over this tensor without a word: vision parts, stored rotary tables, and, unless
/// `with_mtp`, multi-token-prediction heads.
bool is_skippable(std::string_view name, bool with_mtp = false);

/// Names of `source` that are neither in `used` nor skippable, sorted. They mean that the file holds another network
/// than the one that was built.
std::vector<std::string> unused_tensors(const TensorSource& source, const std::set<std::string>& used,
                                        bool with_mtp = false);
/// Throws Error naming the first of them and their number when there are any.
void require_all_used(const TensorSource& source, const std::set<std::string>& used, bool with_mtp = false);

}  // namespace drafthorse
