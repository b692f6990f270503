#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/model.h"
#include "speculative/decoder.h"
#include "speculative/drafter.h"

namespace drafthorse {

/// One request, decoded without an engine.
struct DecodeRequest {
  std::vector<std::int32_t> prompt;  ///< at least one token; all but the last are prefilled
  std::int64_t budget = 1;
  std::int64_t depth = 0;
  std::vector<std::int32_t> stop_ids;
  bool hash = false;
  SamplingParams params;
  AcceptMode mode = AcceptMode::kCoupled;
  std::uint64_t seed = 0;
};

struct Decoded {
  std::vector<std::int32_t> tokens;
  bool stopped = false;
  DraftStats stats;
  std::uint64_t hash = 0;
  std::int64_t position = 0;
};

/// A request that may be stepped, so that several can be interleaved. Owns caches, sampler, session and decoder.
class SteppedDecode {
 public:
  /// `drafter` may be null. Prefills in chunks of `chunk` tokens. `caches` and `draft_caches`, when given, already hold
  /// the first part of the prompt and are used instead of new ones.
  SteppedDecode(Model& target, Drafter* drafter, const DecodeRequest& request, std::int64_t chunk = 512,
                CacheSet* caches = nullptr, CacheSet* draft_caches = nullptr);

  bool done() const { return decoded_.stopped || std::ssize(decoded_.tokens) >= request_.budget; }
  /// One round. Checks what must hold between rounds.
  void step();
  /// Steps until done, closes the decoder and returns what came out.
  Decoded finish();

  CacheSet& caches() { return *caches_; }
  CacheSet& draft_caches() { return *draft_caches_; }
  DraftSession& session() { return *session_; }
  const Decoded& decoded() const { return decoded_; }
  Decoder& decoder() { return *decoder_; }

 private:
  void prefill(Model& target, std::span<const std::int64_t> taps, std::int64_t chunk);

  DecodeRequest request_;
  Sampler sampler_;
  std::unique_ptr<CacheSet> own_caches_;
  std::unique_ptr<CacheSet> own_draft_caches_;
  CacheSet* caches_;
  CacheSet* draft_caches_;
  std::unique_ptr<DraftSession> session_;
  std::optional<Decoder> decoder_;
  Decoded decoded_;
};

/// Decodes the request from start to end.
Decoded decode(Model& target, Drafter* drafter, const DecodeRequest& request);

}  // namespace drafthorse
