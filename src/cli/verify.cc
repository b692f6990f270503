#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/verify_prompts.h"
#include "engine/exactness.h"

namespace drafthorse {
namespace {

struct VerifyFlags {
  ModelFlags model;
  SamplingFlags sampling;
  std::optional<std::string> prompts;
  std::int64_t max_tokens = 128;
  std::string depths = "1,3,7";
  std::string chunks = "512";
  bool json = false;
};

std::string token_text(const std::optional<std::int32_t>& id) {
  return id ? "id " + std::to_string(*id) : std::string("the end");
}

std::string difference_text(const Difference& difference) {
  const std::string where = difference.where + ", prompt " + std::to_string(difference.prompt + 1);
  if (difference.logits) return where + ": equal ids, different logits";
  return where + ", token " + std::to_string(difference.position) + ": " + token_text(difference.found) +
         ", plain decoding has " + token_text(difference.expected);
}

Json difference_json(const Difference& difference) {
  const auto id_json = [](const std::optional<std::int32_t>& id) { return id ? Json(*id) : Json(nullptr); };
  return {{"where", difference.where},          {"prompt", difference.prompt},
          {"position", difference.position},    {"expected", id_json(difference.expected)},
          {"found", id_json(difference.found)}, {"logits_only", difference.logits}};
}

double rate(std::int64_t tokens, double seconds) { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0; }

Json report_json(const ExactnessReport& report, std::size_t prompts, std::size_t machines) {
  Json json;
  json["equal"] = report.equal();
  json["prompts"] = prompts;
  json["machines"] = machines;
  json["runs"] = report.runs;
  json["tokens_compared"] = report.tokens_compared;
  json["differences"] = report.differences;
  json["first_difference"] = report.first ? difference_json(*report.first) : Json(nullptr);
  json["plain_tokens_per_second"] = rate(report.plain_tokens, report.plain_seconds);
  json["speculative_tokens_per_second"] = rate(report.speculative_tokens, report.speculative_seconds);
  json["speed_up"] = report.speed_up();
  json["drafted"] = report.drafted;
  json["accepted"] = report.accepted;
  json["mean_accepted"] = report.mean_accepted();
  return json;
}

void print_report(const ExactnessReport& report) {
  std::printf("%s: %lld runs, %lld tokens compared", report.equal() ? "equal" : "DIFFERENT",
              static_cast<long long>(report.runs), static_cast<long long>(report.tokens_compared));
  if (!report.equal()) std::printf(", %lld runs differ", static_cast<long long>(report.differences));
  std::printf("; drafted %lld, accepted %lld, %.2f a round; plain %.1f tokens/s, with the draft %.1f (%.2f x)\n",
              static_cast<long long>(report.drafted), static_cast<long long>(report.accepted), report.mean_accepted(),
              rate(report.plain_tokens, report.plain_seconds),
              rate(report.speculative_tokens, report.speculative_seconds), report.speed_up());
  if (report.first) std::printf("first difference: %s\n", difference_text(*report.first).c_str());
}

/// Whether plain decoding must give the same bits on both.
bool share_bits(const LoadOptions& a, const LoadOptions& b) {
  return a.isa == b.isa && a.weights.name() == b.weights.name();
}

int verify(const VerifyFlags& flags) {
  std::vector<LoadOptions> machines = flags.model.load_combinations();
  const OpenedModels opened = flags.model.open(true);
  if (!opened.draft) throw Error("verify: --draft DIR is needed: there is nothing to compare plain decoding with");
  ExactnessPlan plan;
  flags.sampling.apply(opened.target.generation, plan.request);
  plan.request.max_tokens = flags.max_tokens;
  plan.depths = parse_numbers(flags.depths, "--depths", 0, 1 << 20);
  plan.chunks = parse_numbers(flags.chunks, "--chunks", 1, 1 << 20);
  const std::int64_t context = context_of(opened.target, machines.front());
  plan.prompts =
      flags.prompts ? read_prompts(*flags.prompts, opened.target, context) : built_in_prompts(opened.target, context);
  for (const std::string& warning : flags.sampling.warnings(opened.target.generation)) print_note(warning);
  const std::int64_t limit = opened.draft->config.block_size - 1;
  for (const std::int64_t depth : plan.depths) {
    if (depth > limit)
      print_note("--depths: " + std::to_string(depth) + " is more than this draft can make; " + std::to_string(limit) +
                 " is used");
  }
  const std::size_t prompts = plan.prompts.size();
  ExactnessCheck check(std::move(plan));

  const std::int64_t largest_chunk = *std::max_element(check.plan().chunks.begin(), check.plan().chunks.end());
  for (std::size_t i = 0; i < machines.size(); ++i) {
    machines[i].chunk = largest_chunk;
    if (i == 0 || !share_bits(machines[i - 1], machines[i])) check.new_reference();
    LoadedModel model(opened.target, opened.draft.get(), machines[i]);
    if (i == 0) {
      for (const std::string& warning : model.warnings()) print_note(warning);
    }
    const std::string label = std::string(model.isa()) + " " + model.weights_name() + ", " +
                              std::to_string(model.threads()) + (model.threads() == 1 ? " thread" : " threads") +
                              machines[i].draft_head.label();
    const std::int64_t differences = check.report().differences;
    Generator generator = model.generator();
    check.run(generator, label);
    if (!flags.json) {
      std::printf("%s: %s\n", label.c_str(), check.report().differences == differences ? "equal" : "DIFFERENT");
      std::fflush(stdout);
    }
  }
  if (flags.json) {
    print_json_line(report_json(check.report(), prompts, machines.size()));
  } else {
    print_report(check.report());
  }
  return check.report().equal() ? kExitOk : kExitDifferent;
}

}  // namespace

Command add_verify_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "verify", "prove that drafting changes nothing: plain against drafted decoding, bit by bit");
  auto flags = std::make_shared<VerifyFlags>();
  flags->model.add_to(*command, true);
  command->add_option("--prompts", flags->prompts, "JSON lines with prompt or ids (default: 16 built-in prompts)")
      ->type_name("FILE");
  command->add_option("-n,--max-tokens", flags->max_tokens, "tokens per prompt, at most")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
      ->capture_default_str();
  command->add_option("--depths", flags->depths, "depths to draft with, a comma list")
      ->type_name("LIST")
      ->capture_default_str();
  command->add_option("--chunks", flags->chunks, "prompt tokens per pass, a comma list")
      ->type_name("LIST")
      ->capture_default_str();
  flags->sampling.add_to(*command);
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(
      "Compares token ids and the hash of all logits; exits with 0 when all is equal, 1 when not, 2 for bad input.\n"
      "Example:\n"
      "  drafthorse verify models/demo/target --draft models/demo/dflash -n 100 --depths 1,7 --chunks 7,512 --isa all");
  return {command, [flags] { return verify(*flags); }};
}

}  // namespace drafthorse
