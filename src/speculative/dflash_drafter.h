#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "model/draft_model.h"
#include "speculative/drafter.h"

namespace drafthorse {

/// Drafts whole blocks with a block-diffusion network (DFlash): one forward over the anchor and n mask tokens, where
/// the row at each mask predicts the token at its own slot.
///
/// A session buffers the feature rows it is told of and writes them as context rows: together with the next block's
/// forward, or in a forward of their own once kFlushRows are waiting, so that a session that never drafts stays
/// bounded. The draft's caches hold context rows only. A call that throws has not happened: the same call may be made
/// again.
class DFlashDrafter : public Drafter {
 public:
  /// Feature rows waiting before they are written without a block.
  static constexpr std::int64_t kFlushRows = 256;

  /// `model` outlives the drafter and its sessions.
  explicit DFlashDrafter(DraftModel& model) : model_(model) {}

  std::int64_t draft_limit() const override { return model_.facts().block_size - 1; }
  std::span<const std::int64_t> taps() const override { return model_.facts().taps; }
  std::unique_ptr<CacheSet> make_caches() override { return model_.make_caches(); }
  std::unique_ptr<DraftSession> open(CacheSet& caches, const Sampler& sampler) override;

 private:
  DraftModel& model_;
};

}  // namespace drafthorse
