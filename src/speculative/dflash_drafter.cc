#include "speculative/dflash_drafter.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.h"
#include "tensor/arena.h"

namespace drafthorse {
namespace {

// Slots [0, written) are in the draft's caches, [written, written + pending) wait in pending_.
class DFlashSession : public DraftSession {
 public:
  DFlashSession(DraftModel& model, CacheSet& caches, const Sampler& sampler)
      : model_(model), caches_(caches), sampler_(sampler), width_(model.facts().feature_width) {}

  std::int64_t frontier() const override { return caches_.offset() + pending_rows(); }

  void committed(std::span<const std::int32_t> tokens, ConstRows features, std::int64_t slot) override {
    const std::int64_t count = std::ssize(tokens);
    DRAFTHORSE_CHECK(features.rows == count && features.cols == width_, count << " tokens with features ["
                                                                              << features.rows << ", " << features.cols
                                                                              << "], width " << width_);
    const std::int64_t start = frontier() - slot;
    DRAFTHORSE_CHECK(start >= 0,
                     "context gap: the run starts at slot " << slot << ", the first slot missing is " << frontier());
    if (start >= count) return;
    const ConstRows fresh = features.slice(start, count);
    if (fresh.rows >= DFlashDrafter::kFlushRows) {  // a prompt's chunk: written from where it lies
      flush();
      write_context(fresh);
      return;
    }
    const std::size_t before = pending_.size();
    for (std::int64_t r = 0; r < fresh.rows; ++r) pending_.insert(pending_.end(), fresh.row(r), fresh.row(r) + width_);
    if (pending_rows() < DFlashDrafter::kFlushRows) return;
    try {
      flush();
    } catch (...) {
      pending_.resize(before);
      throw;
    }
  }

  DraftProposal propose(std::int32_t anchor, std::int64_t max) override {
    const std::int64_t n = std::min(max, model_.facts().block_size - 1);
    if (n <= 0 || frontier() == 0) return {};
    const std::int64_t anchor_slot = frontier();
    block_.assign(static_cast<std::size_t>(n + 1), model_.facts().mask_token_id);
    block_.front() = anchor;

    CacheTransaction context(caches_, pending_rows());
    const ConstRows hidden = model_.forward(pending(), block_, caches_);
    DRAFTHORSE_CHECK(hidden.rows == n + 1, hidden.rows << " rows of a block of " << n + 1);
    context.commit(pending_rows());
    pending_.clear();

    tokens_.resize(static_cast<std::size_t>(n));
    const ConstRows drafting = hidden.slice(1, n + 1);  // the anchor's own row predicts what is known
    LogitsSink sink;
    if (!sampler_.needs_logits()) {
      sink.argmax = tokens_.data();
      model_.unembed(drafting, sink);
      return {tokens_, nullptr};
    }
    arena_.reset();
    const std::vector<std::int32_t>& ids = model_.facts().vocab;
    sink.logits = arena_.rows(n, ids.empty() ? sampler_.vocab_width() : std::ssize(ids));
    model_.unembed(drafting, sink);
    sampler_.propose(sink.logits, ids, anchor_slot + 1, tokens_, proposed_, scratch_);
    return {tokens_, proposed_.rows() > 0 ? &proposed_ : nullptr};
  }

  void settle(std::int32_t) override { flush(); }

 private:
  std::int64_t pending_rows() const { return std::ssize(pending_) / width_; }
  ConstRows pending() const { return {pending_.data(), pending_rows(), width_, width_}; }

  void flush() {
    if (pending_.empty()) return;
    write_context(pending());
    pending_.clear();
  }

  void write_context(ConstRows features) {
    CacheTransaction context(caches_, features.rows);
    model_.forward(features, {}, caches_);
    context.commit(features.rows);
  }

  DraftModel& model_;
  CacheSet& caches_;
  const Sampler& sampler_;
  std::int64_t width_;
  std::vector<float> pending_;
  std::vector<std::int32_t> block_;
  std::vector<std::int32_t> tokens_;
  Distribution proposed_;
  Arena arena_;
  SamplerScratch scratch_;
};

}  // namespace

std::unique_ptr<DraftSession> DFlashDrafter::open(CacheSet& caches, const Sampler& sampler) {
  return std::make_unique<DFlashSession>(model_, caches, sampler);
}

}  // namespace drafthorse
