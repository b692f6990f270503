#include "support/scripted_decode.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "support/test_machine.h"

namespace drafthorse {

SteppedDecode::SteppedDecode(Model& target, Drafter* drafter, const DecodeRequest& request, std::int64_t chunk,
                             CacheSet* caches, CacheSet* draft_caches)
    : request_(request),
      sampler_(request.params, request.mode, request.seed, target.facts().vocab_width, test_exec()),
      caches_(caches),
      draft_caches_(draft_caches) {
  if (caches_ == nullptr) {
    own_caches_ = target.make_caches();
    caches_ = own_caches_.get();
  }
  std::span<const std::int64_t> taps;
  if (drafter != nullptr) {
    if (draft_caches_ == nullptr) {
      own_draft_caches_ = drafter->make_caches();
      draft_caches_ = own_draft_caches_.get();
    }
    session_ = drafter->open(*draft_caches_, sampler_);
    taps = drafter->taps();
  }
  prefill(target, taps, chunk);
  DecodeOptions options;
  options.depth = request_.depth;
  options.stop_ids = request_.stop_ids;
  options.hash = request_.hash;
  decoder_.emplace(target, *caches_, session_.get(), taps, sampler_, request_.prompt.back(), options);
}

void SteppedDecode::prefill(Model& target, std::span<const std::int64_t> taps, std::int64_t chunk) {
  const std::int64_t end = std::ssize(request_.prompt) - 1;
  for (std::int64_t slot = caches_->offset(); slot < end; slot = caches_->offset()) {
    const auto count = static_cast<std::size_t>(std::min(chunk, end - slot));
    const auto ids = std::span<const std::int32_t>(request_.prompt).subspan(static_cast<std::size_t>(slot), count);
    const SequenceRows sequence{ids, caches_};
    const ForwardResult result = target.forward({{&sequence, 1}, taps});
    if (session_ != nullptr) session_->committed(ids, result.taps, slot);
  }
}

void SteppedDecode::step() {
  const Round round = decoder_->next(request_.budget - std::ssize(decoded_.tokens));
  DRAFTHORSE_CHECK(!round.tokens.empty(), "an empty round");
  decoded_.tokens.insert(decoded_.tokens.end(), round.tokens.begin(), round.tokens.end());
  decoded_.stopped = round.stopped;
  decoded_.position = decoder_->position();
  // The anchor sits at the first slot that is in no cache; the session knows the slots before it.
  DRAFTHORSE_CHECK(decoder_->position() == std::ssize(request_.prompt) - 1 + std::ssize(decoded_.tokens),
                   "position " << decoder_->position());
  DRAFTHORSE_CHECK(caches_->offset() == decoder_->position(), "offset " << caches_->offset());
  if (session_ != nullptr) DRAFTHORSE_CHECK(session_->frontier() == decoder_->position(), session_->frontier());
}

Decoded SteppedDecode::finish() {
  while (!done()) step();
  decoder_->close();
  decoded_.stats = decoder_->stats();
  decoded_.hash = decoder_->logits_hash();
  return decoded_;
}

Decoded decode(Model& target, Drafter* drafter, const DecodeRequest& request) {
  return SteppedDecode(target, drafter, request).finish();
}

}  // namespace drafthorse
