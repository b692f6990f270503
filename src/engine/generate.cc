#include "engine/generate.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "cache/cache.h"
#include "engine/stop_matcher.h"
#include "sampling/sampler.h"
#include "speculative/decoder.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/utf8.h"

namespace drafthorse {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Tokens to text, with stop strings. Without a tokenizer all text is empty.
class TextStream {
 public:
  TextStream(const Tokenizer* tokenizer, const std::vector<std::string>& stops) : matcher_(stops) {
    if (tokenizer) decoder_.emplace(*tokenizer);
  }
  /// The next token. True when it completes a stop string.
  bool push(std::int32_t token) {
    if (decoder_) matcher_.push(decoder_->push(token), piece_);
    return matcher_.stopped();
  }
  /// No more tokens: what was held back becomes part of the piece.
  void finish() {
    if (decoder_) matcher_.push(decoder_->finish(), piece_);
    matcher_.finish(piece_);
  }
  /// The text that became certain since the last call.
  std::string take_piece() { return std::exchange(piece_, {}); }

 private:
  std::optional<StreamDecoder> decoder_;
  StopMatcher matcher_;
  std::string piece_;
};

/// One request on its way: opens what it needs, reads the prompt, then emits round by round.
class Generation {
 public:
  Generation(const Generator::Parts& parts, const GenerateRequest& request, TokenSink& sink)
      : parts_(parts),
        request_(request),
        sink_(sink),
        randomness_(resolve_randomness(request.sampling, request.accept)),
        sampler_(request.sampling, randomness_.mode, randomness_.seed, parts.target.facts().vocab_width, parts.exec),
        caches_(parts.target.make_caches()),
        text_(parts.tokenizer, request.stops) {
    if (!sampler_.greedy()) result_.randomness = randomness_;
    if (request.draft && parts.drafter) open_session(*parts.drafter);
  }

  GenerateResult run() {
    auto start = std::chrono::steady_clock::now();
    const bool read = prefill();
    result_.prefill_seconds = seconds_since(start);
    start = std::chrono::steady_clock::now();
    if (read) decode();
    result_.decode_seconds = seconds_since(start);
    return std::move(result_);
  }

 private:
  /// Before the prompt is read, so that the draft follows it.
  void open_session(Drafter& drafter) {
    const std::int64_t limit = drafter.draft_limit();
    const std::int64_t wanted = request_.depth.value_or(limit);
    if (wanted > limit) {
      result_.notes.push_back("depth " + std::to_string(wanted) + " is more than this draft can make; " +
                              std::to_string(limit) + " is used");
    }
    depth_ = std::min(wanted, limit);
    result_.depth = depth_;
    taps_ = drafter.taps();
    draft_caches_ = drafter.make_caches();
    session_ = drafter.open(*draft_caches_, sampler_);
  }

  /// Stops one token short: the last prompt token is the first anchor. False when cancelled.
  bool prefill() {
    const std::span<const std::int32_t> prompt = request_.prompt;
    const std::int64_t end = std::ssize(prompt) - 1;
    for (std::int64_t at = 0; at < end; at += request_.chunk) {
      if (sink_.cancelled()) {
        result_.finish_reason = FinishReason::kCancelled;
        return false;
      }
      const auto rows = static_cast<std::size_t>(std::min(request_.chunk, end - at));
      const SequenceRows run{prompt.subspan(static_cast<std::size_t>(at), rows), caches_.get()};
      const ForwardResult forward = parts_.target.forward({.sequences = {&run, 1}, .taps = taps_});
      if (session_) session_->committed(run.ids, forward.taps, at);
    }
    return true;
  }

  void decode() {
    const std::int64_t room = parts_.target.facts().context - std::ssize(request_.prompt);
    const std::int64_t budget = std::min(request_.max_tokens.value_or(room), room);
    DecodeOptions options{.depth = depth_,
                          .stop_ids = request_.ignore_eos ? std::span<const std::int32_t>() : parts_.stop_ids,
                          .hash = request_.hash,
                          .ends = [this](std::int32_t token) { return text_.push(token); }};
    Decoder decoder(parts_.target, *caches_, session_.get(), taps_, sampler_, request_.prompt.back(), options);
    std::optional<FinishReason> ended;
    while (!ended) {
      const Round round = decoder.next(budget - std::ssize(result_.ids));
      result_.ids.insert(result_.ids.end(), round.tokens.begin(), round.tokens.end());
      if (round.stopped) {
        ended = FinishReason::kStop;
      } else if (std::ssize(result_.ids) >= budget) {
        ended = FinishReason::kLength;
      }
      if (ended) text_.finish();
      emit(round.tokens);
      if (!ended && sink_.cancelled()) {
        ended = FinishReason::kCancelled;
        text_.finish();
        emit({});
      }
    }
    decoder.close();
    result_.finish_reason = *ended;
    result_.stats = decoder.stats();
    result_.logits_hash = decoder.logits_hash();
  }

  void emit(std::span<const std::int32_t> tokens) {
    const std::string piece = text_.take_piece();
    result_.text += piece;
    sink_.emit(tokens, piece);
  }

  const Generator::Parts& parts_;
  const GenerateRequest& request_;
  TokenSink& sink_;
  Randomness randomness_;
  Sampler sampler_;
  std::unique_ptr<CacheSet> caches_;
  std::unique_ptr<CacheSet> draft_caches_;
  std::unique_ptr<DraftSession> session_;
  std::span<const std::int64_t> taps_;
  std::int64_t depth_ = 0;
  TextStream text_;
  GenerateResult result_;
};

}  // namespace

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "";
}

double GenerateResult::tokens_per_second() const {
  return decode_seconds > 0.0 ? static_cast<double>(ids.size()) / decode_seconds : 0.0;
}

void check_ids(std::span<const std::int32_t> ids, std::int64_t vocab_width, const std::string& source) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_width) {
      throw Error(source + ": id " + std::to_string(ids[i]) + " at position " + std::to_string(i) +
                  ": the model's ids are 0 to " + std::to_string(vocab_width - 1));
    }
  }
}

void check_prompt(std::span<const std::int32_t> prompt, const RequestLimits& limits, const std::string& source) {
  if (prompt.empty()) throw Error(source + ": empty prompt, there is nothing to continue");
  check_ids(prompt, limits.vocab_width, source);
  if (std::ssize(prompt) >= limits.context) {
    throw Error(source + ": its " + std::to_string(prompt.size()) + " tokens leave no room in the context of " +
                std::to_string(limits.context) + " positions: shorten it" +
                (limits.longest_context > limits.context
                     ? ", or raise --context (up to " + std::to_string(limits.longest_context) + ")"
                     : ""));
  }
}

void check_request(const GenerateRequest& request, const RequestLimits& limits) {
  check_prompt(request.prompt, limits, "prompt");
  if (request.max_tokens.value_or(1) < 1) {
    throw Error("max tokens = " + std::to_string(*request.max_tokens) + ": at least 1 is needed");
  }
  if (request.chunk < 1) throw Error("chunk = " + std::to_string(request.chunk) + ": at least 1 is needed");
  if (request.depth.value_or(0) < 0) {
    throw Error("depth = " + std::to_string(*request.depth) + ": 0 or more is needed");
  }
  if (request.depth.value_or(0) > 0 && !limits.drafter) {
    throw Error("depth = " + std::to_string(*request.depth) + ": there is no draft model to draft with");
  }
  if (!request.stops.empty() && !limits.tokenizer) {
    throw Error("stop strings need text, and this model has no tokenizer");
  }
  for (const std::string& stop : request.stops) {
    if (stop.empty()) throw Error("stop string: it is empty");
    // Half a character would match inside one and leave the other half at the end of the text.
    if (const std::size_t bad = find_invalid_utf8(stop); bad != std::string::npos) {
      throw Error("stop string: not valid UTF-8 at byte " + std::to_string(bad));
    }
  }
}

GenerateResult Generator::generate(const GenerateRequest& request, TokenSink& sink) {
  const ModelFacts& facts = parts_.target.facts();
  check_request(request, {.vocab_width = facts.vocab_width,
                          .context = facts.context,
                          .drafter = parts_.drafter != nullptr,
                          .tokenizer = parts_.tokenizer != nullptr});
  return Generation(parts_, request, sink).run();
}

}  // namespace drafthorse
