#include "sampling/sampling_params.h"

#include <string>

#include "base/error.h"
#include "base/random.h"

namespace drafthorse {

std::string_view accept_mode_name(AcceptMode mode) { return mode == AcceptMode::kCoupled ? "coupled" : "rejection"; }

std::optional<AcceptMode> parse_accept_mode(std::string_view word) {
  if (word == "auto") return std::nullopt;
  for (const AcceptMode mode : {AcceptMode::kCoupled, AcceptMode::kRejection}) {
    if (word == accept_mode_name(mode)) return mode;
  }
  throw Error("accept = " + std::string(word) + ": not a way to check drafts; use auto, coupled or rejection");
}

Randomness resolve_randomness(const SamplingParams& params, std::optional<AcceptMode> wanted) {
  Randomness settled;
  settled.mode = wanted.value_or(params.seed ? AcceptMode::kCoupled : AcceptMode::kRejection);
  if (params.seed) {
    settled.seed = *params.seed;
  } else if (!params.greedy()) {
    settled.seed = fresh_seed();
  }
  return settled;
}

}  // namespace drafthorse
