#pragma once

#include <set>
#include <string>

#include "checkpoint/tensor_source.h"

namespace drafthorse {

/// Where a draft's tensors sit among the names of its file.
struct DraftNames {
  std::string prefix;       ///< of "layers.{i}." and "norm.weight": "", "model." or "draft."
  std::string fc;           ///< module path of the feature projection, without ".weight"
  std::string hidden_norm;  ///< module path of the norm after it

  std::string final_norm() const { return prefix + "norm"; }
  /// "<prefix>layers.{index}."
  std::string layer(int index) const { return prefix + "layers." + std::to_string(index) + "."; }
};

/// Recognises the plain layout (fc, hidden_norm) and the publisher's MuseGlimmer layout (encoder.fc,
/// encoder.output_norm_enc), each under any of the prefixes. Throws Error naming what is missing: fc; hidden_norm;
/// norm. Refuses files with a vocabulary map (d2t, t2d), whose draft ids are not the target's.
DraftNames find_draft_names(const TensorSource& source);

/// Throws Error naming the first tensor, and the number of them, that is neither in `used` nor a copy of what a draft
/// borrows from its target (an embedding table or an output head: dropped, the target's own are used) nor a stored
/// rotary table.
void require_all_draft_tensors_used(const TensorSource& source, const std::set<std::string>& used);

}  // namespace drafthorse
