#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "sampling/sampling_params.h"
#include "speculative/draft_stats.h"
#include "speculative/drafter.h"
#include "tokenizer/tokenizer.h"

namespace drafthorse {

/// One text to be continued.
struct GenerateRequest {
  std::vector<std::int32_t> prompt = {};        ///< at least one id
  std::optional<std::int64_t> max_tokens = {};  ///< at least 1; nothing: until the context is full
  SamplingParams sampling = {};
  std::optional<AcceptMode> accept = {};  ///< nothing: coupled when there is a seed, else rejection
  bool draft = true;                      ///< false: no draft session at all
  std::optional<std::int64_t> depth =
      {};  ///< drafts per round; nothing: the drafter's limit; 0: the session is fed but never asked
  std::vector<std::string> stops = {};  ///< the text ends before the first of them; none empty
  bool ignore_eos = false;              ///< stop ids are tokens like any other
  std::int64_t chunk = 512;             ///< rows of a prefill pass
  bool hash = true;                     ///< compute GenerateResult::logits_hash
};

/// What a request is checked against.
struct RequestLimits {
  std::int64_t vocab_width = 0;
  std::int64_t context = 0;
  std::int64_t longest_context = 0;  ///< that the model could be loaded with; 0: unknown
  bool drafter = false;              ///< there is a draft model
  bool tokenizer = false;            ///< there is text
};
/// Throws Error for an id that is not in [0, vocab_width), naming `source`, the id and its position.
void check_ids(std::span<const std::int32_t> ids, std::int64_t vocab_width, const std::string& source);
/// Throws Error naming `source` for a prompt that is empty, holds an id outside the vocabulary, or leaves no room in
/// the context.
void check_prompt(std::span<const std::int32_t> prompt, const RequestLimits& limits, const std::string& source);
/// Throws Error for a prompt as above, a depth when there is no drafter, stop strings without a tokenizer, empty ones
/// or ones that are not UTF-8, or a limit below 1. Needs no weights: callers may ask before they load any.
void check_request(const GenerateRequest& request, const RequestLimits& limits);

/// Why a generation ended.
enum class FinishReason : std::uint8_t {
  kStop,       ///< a stop id or a stop string
  kLength,     ///< the request's limit, or a full context
  kCancelled,  ///< the sink asked for it
};
/// "stop", "length", "cancelled".
std::string_view finish_reason_name(FinishReason reason);

struct GenerateResult {
  std::vector<std::int32_t> ids;  ///< every emitted token, a final stop id included
  std::string text;               ///< without the stop id, ended before a stop string; "" without a tokenizer
  FinishReason finish_reason = FinishReason::kLength;
  DraftStats stats;
  double prefill_seconds = 0.0;
  double decode_seconds = 0.0;
  std::optional<Randomness> randomness;  ///< what the draws depended on; nothing when greedy
  std::optional<std::int64_t> depth;     ///< drafts per round at most; nothing without a draft session
  std::uint64_t logits_hash = 0;
  std::vector<std::string> notes;  ///< what the user should know (a clamped depth), one line each

  double tokens_per_second() const;
};

/// Where text goes while it is made. Called on the thread that generates.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  /// One round's tokens and the text that became certain with them: whole UTF-8 characters, possibly none.
  virtual void emit(std::span<const std::int32_t> ids, std::string_view text) = 0;
  /// Asked between prefill chunks and between rounds; true ends the generation.
  virtual bool cancelled() { return false; }
};

/// Continues texts on one target, one after another. Requests share nothing but the weights.
class Generator {
 public:
  /// What it works with; `drafter` and `tokenizer` may be null. All outlive the generator.
  struct Parts {
    Model& target;
    Drafter* drafter;
    const Tokenizer* tokenizer;
    std::span<const std::int32_t> stop_ids;
    ExecContext& exec;
  };
  explicit Generator(const Parts& parts) : parts_(parts) {}

  /// Throws Error as check_request() does, before anything is computed.
  GenerateResult generate(const GenerateRequest& request, TokenSink& sink);

 private:
  Parts parts_;
};

}  // namespace drafthorse
