#include "engine/exactness.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace drafthorse {
namespace {

/// A verification listens to nobody.
class SilentSink : public TokenSink {
 public:
  void emit(std::span<const std::int32_t>, std::string_view) override {}
};

std::optional<std::int32_t> at(const std::vector<std::int32_t>& ids, std::int64_t i) {
  if (i >= static_cast<std::int64_t>(ids.size())) return std::nullopt;
  return ids[static_cast<std::size_t>(i)];
}

}  // namespace

double ExactnessReport::speed_up() const {
  if (plain_seconds <= 0.0 || speculative_seconds <= 0.0 || plain_tokens == 0) return 0.0;
  return (static_cast<double>(speculative_tokens) / speculative_seconds) /
         (static_cast<double>(plain_tokens) / plain_seconds);
}

double ExactnessReport::mean_accepted() const {
  return drafting_rounds == 0 ? 0.0 : static_cast<double>(accepted) / static_cast<double>(drafting_rounds);
}

ExactnessCheck::ExactnessCheck(ExactnessPlan plan) : plan_(std::move(plan)) {
  GenerateRequest& request = plan_.request;
  if (request.sampling.greedy()) return;
  const Randomness randomness = resolve_randomness(request.sampling, request.accept);
  if (randomness.mode == AcceptMode::kRejection) {
    throw Error(
        "verify: sampling with rejection keeps the distribution of the text, not the text itself, so runs cannot be "
        "compared: give --seed or --accept coupled");
  }
  request.sampling.seed = randomness.seed;  // one for all runs
  request.accept = randomness.mode;
}

void ExactnessCheck::run(Generator& generator, const std::string& label) {
  for (const std::int64_t chunk : plan_.chunks) {
    GenerateRequest request = plan_.request;
    request.chunk = chunk;
    const std::string where = label + ", chunk " + std::to_string(chunk);
    request.draft = false;
    request.depth.reset();
    run_prompts(generator, request, where + ", plain");
    request.draft = true;
    for (const std::int64_t depth : plan_.depths) {
      request.depth = depth;
      run_prompts(generator, request, where + ", depth " + std::to_string(depth));
    }
  }
}

void ExactnessCheck::run_prompts(Generator& generator, GenerateRequest request, const std::string& where) {
  SilentSink sink;
  for (const bool hash : {true, false}) {
    request.hash = hash;
    const bool is_reference = reference_.empty();
    for (std::size_t prompt = 0; prompt < plan_.prompts.size(); ++prompt) {
      request.prompt = plan_.prompts[prompt];
      const GenerateResult result = generator.generate(request, sink);
      if (is_reference) {
        reference_.push_back({result.ids, result.logits_hash});
        continue;
      }
      compare(result, hash, prompt, where + (hash ? "" : ", without hash"));
      if (hash) continue;
      const auto tokens = static_cast<std::int64_t>(result.ids.size());
      if (request.draft) {
        report_.speculative_seconds += result.decode_seconds;
        report_.speculative_tokens += tokens;
        report_.drafting_rounds += result.stats.drafting_rounds;
        report_.drafted += result.stats.drafted;
        report_.accepted += result.stats.accepted;
      } else {
        report_.plain_seconds += result.decode_seconds;
        report_.plain_tokens += tokens;
      }
    }
  }
}

void ExactnessCheck::compare(const GenerateResult& result, bool hashed, std::size_t prompt, const std::string& where) {
  const Reference& reference = reference_[prompt];
  ++report_.runs;
  report_.tokens_compared += static_cast<std::int64_t>(std::max(result.ids.size(), reference.ids.size()));
  const bool same_ids = result.ids == reference.ids;
  if (same_ids && (!hashed || result.logits_hash == reference.logits_hash)) return;
  ++report_.differences;
  if (report_.first) return;
  const auto place = std::mismatch(result.ids.begin(), result.ids.end(), reference.ids.begin(), reference.ids.end());
  const auto position = static_cast<std::int64_t>(place.first - result.ids.begin());
  report_.first = Difference{where, prompt, position, at(reference.ids, position), at(result.ids, position), same_ids};
}

}  // namespace drafthorse
