#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/model.h"
#include "ops/exec_context.h"
#include "quant/packed_matrix.h"
#include "tensor/arena.h"

namespace drafthorse {

/// What a draft's hidden rows are projected to logits with. A draft borrows its target's head, which for small models
/// is most of what drafting costs; a copy for drafting only can be smaller. What the target makes of a draft does not
/// depend on it.
struct DraftHeadChoice {
  std::optional<WeightType> type;        ///< of the copy; nothing: as the target holds its head
  std::vector<std::int32_t> vocab = {};  ///< ids it can name, strictly ascending; empty: all

  /// Whether there is a copy at all.
  bool copies() const { return type.has_value() || !vocab.empty(); }
};

/// The head of a draft: the target's, or a copy of some of its rows in a type of its own.
class DraftHead {
 public:
  /// Fails a CHECK for ids outside the target's vocabulary. `target` and `exec` outlive it.
  DraftHead(DraftTarget& target, const DraftHeadChoice& choice, ExecContext& exec);

  /// Bytes of the copy, for a head held as `target_type`.
  static std::uint64_t bytes(const DraftHeadChoice& choice, WeightType target_type, std::int64_t vocab_width,
                             std::int64_t hidden_width);

  /// Contract of DraftModel::unembed.
  void unembed(ConstRows hidden, float multiplier, float cap, const LogitsSink& sink);

 private:
  DraftTarget& target_;
  ExecContext& exec_;
  std::vector<std::int32_t> vocab_;
  PackedMatrix copy_;  // no rows: the target's own head
  Arena scratch_;
};

}  // namespace drafthorse
