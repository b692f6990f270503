#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/generate.h"

namespace drafthorse {

/// What to compare. Every prompt is continued plainly and with the draft at every depth, prefilled in chunks of every
/// size.
struct ExactnessPlan {
  std::vector<std::vector<std::int32_t>> prompts;
  GenerateRequest request;  ///< the rest of each request; its prompt, draft, depth, chunk and hash are not read
  std::vector<std::int64_t> depths;
  std::vector<std::int64_t> chunks;
};

/// The first place where two runs that must agree do not.
struct Difference {
  std::string where;                     ///< the run that differs: "avx512 bf16, 2 threads, chunk 7, depth 3"
  std::size_t prompt = 0;                ///< its index in the plan
  std::int64_t position = 0;             ///< index among the emitted tokens
  std::optional<std::int32_t> expected;  ///< nothing: the reference ends here
  std::optional<std::int32_t> found;     ///< nothing: the run ends here
  bool logits = false;  ///< the ids agree (position is then their number) and the hash of the logits does not
};

struct ExactnessReport {
  std::int64_t runs = 0;  ///< prompt continuations that were compared with the reference
  std::int64_t tokens_compared = 0;
  std::int64_t differences = 0;  ///< runs that differ
  std::optional<Difference> first;
  // Of the runs that users make (no hash), for the speed-up and the acceptance.
  double plain_seconds = 0.0;
  std::int64_t plain_tokens = 0;
  double speculative_seconds = 0.0;
  std::int64_t speculative_tokens = 0;
  std::int64_t drafting_rounds = 0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;

  bool equal() const { return differences == 0; }
  /// Speculative over plain tokens per second; 0 without both.
  double speed_up() const;
  double mean_accepted() const;  ///< per round that drafted
};

/// Compares generations that must not differ: ids always, and the hash of the logits where both compute it. Each run is
/// made twice, the second time without the hash, so that the fused path which users run is proven too.
class ExactnessCheck {
 public:
  /// Throws Error when the request samples by rejection, whose output depends on the draft by design.
  explicit ExactnessCheck(ExactnessPlan plan);

  /// Forgets the reference: the plain run that comes next is the new one. For another kernel table or weight type,
  /// whose bits may differ.
  void new_reference() { reference_.clear(); }
  /// Runs the whole plan. `label` names the machine and the weights in differences.
  void run(Generator& generator, const std::string& label);

  const ExactnessReport& report() const { return report_; }
  const ExactnessPlan& plan() const { return plan_; }

 private:
  struct Reference {
    std::vector<std::int32_t> ids;
    std::uint64_t logits_hash = 0;
  };
  void run_prompts(Generator& generator, GenerateRequest request, const std::string& where);
  void compare(const GenerateResult& result, bool hashed, std::size_t prompt, const std::string& where);

  ExactnessPlan plan_;
  std::vector<Reference> reference_;  // by prompt; empty before the first run
  ExactnessReport report_;
};

}  // namespace drafthorse
