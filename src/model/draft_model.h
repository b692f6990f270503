#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/cache.h"
#include "model/model.h"
#include "tensor/rows.h"

namespace drafthorse {

/// What a session needs to know of a block-diffusion draft.
struct DraftFacts {
  std::int64_t block_size = 0;  ///< trained block length, the anchor included; at most block_size - 1 drafts
  std::int32_t mask_token_id = 0;
  std::vector<std::int64_t> taps;  ///< target_layer_ids, strictly ascending
  std::int64_t feature_width = 0;  ///< taps.size() * hidden_width
  /// The ids its logits stand for, strictly ascending: logit i is that of vocab[i]. Empty: the target's, in order.
  std::vector<std::int32_t> vocab = {};
};

/// A block-diffusion draft network (DFlash), bound to its target's embeddings and head at load.
///
/// Its caches hold context rows only: the row at slot S derives from the target's features at S. Block rows live in
/// scratch.
class DraftModel {
 public:
  virtual ~DraftModel() = default;
  virtual const DraftFacts& facts() const = 0;
  virtual std::unique_ptr<CacheSet> make_caches() = 0;
  /// One forward. `features` [m, feature_width] become context rows at slots [o, o + m), o = caches.offset(), and stay.
  /// `ids` (anchor, then mask tokens; may be empty) are block rows at slots o + m, o + m + 1, .. and leave nothing
  /// behind. At least one input is non-empty. Returns the final-normed hidden rows of the block [ids.size(),
  /// hidden_width]; they live until the next forward.
  virtual ConstRows forward(ConstRows features, std::span<const std::int32_t> ids, CacheSet& caches) = 0;
  /// Draft logits of block rows: the target's raw head (or a copy of its own of some of its rows), then the draft's own
  /// multiplier and soft cap. Logit rows are as wide as facts().vocab; argmax gives ids of the target.
  virtual void unembed(ConstRows hidden, const LogitsSink& sink) = 0;
};

}  // namespace drafthorse
