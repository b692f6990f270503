#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/interrupt.h"

namespace drafthorse {
namespace {

struct RunFlags {
  ModelFlags model;
  SamplingFlags sampling;
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_file;
  std::optional<std::string> ids;
  std::int64_t max_tokens = 256;
  std::string depth;
  std::int64_t chunk = 512;
  bool json = false;
};

/// Text to standard output, a write per round. A model without a tokenizer has no text: its ids are shown instead.
class TerminalSink : public TokenSink {
 public:
  TerminalSink(bool silent, bool show_ids) : silent_(silent), show_ids_(show_ids) {}

  void emit(std::span<const std::int32_t> ids, std::string_view text) override {
    if (silent_) return;
    std::string shown(text);
    if (show_ids_) {
      for (const std::int32_t id : ids) {
        if (!std::exchange(first_, false)) shown += ',';
        shown += std::to_string(id);
      }
    }
    if (shown.empty()) return;
    if (std::fwrite(shown.data(), 1, shown.size(), stdout) != shown.size() || std::fflush(stdout) != 0) closed_ = true;
  }
  bool cancelled() override { return closed_ || interrupted(); }
  /// Whether the reader is gone.
  bool closed() const { return closed_; }

 private:
  bool silent_;
  bool show_ids_;
  bool first_ = true;
  bool closed_ = false;
};

std::vector<std::int32_t> read_prompt(const RunFlags& flags, const TargetFiles& files) {
  const int sources = flags.prompt.has_value() + flags.prompt_file.has_value() + flags.ids.has_value();
  if (sources > 1) throw Error("-p, --prompt-file and --ids: give one of them");
  if (flags.ids) return parse_ids(*flags.ids, "--ids");
  std::string source = "-p";
  std::string text;
  if (flags.prompt) {
    text = *flags.prompt;
  } else if (flags.prompt_file) {
    source = *flags.prompt_file;
    text = read_text_file(*flags.prompt_file);
  } else {
    source = "standard input";
    if (isatty(STDIN_FILENO) != 0) print_note("reading the prompt from the terminal; Ctrl-D ends it");
    text = read_standard_input();
  }
  std::vector<std::int32_t> prompt = encode_prompt(files, text, source);
  if (prompt.empty()) {
    throw Error("empty prompt: " + source + " has no text; give -p TEXT, --prompt-file FILE or --ids 1,2");
  }
  return prompt;
}

std::string hash_text(std::uint64_t hash) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(hash));
  return text;
}

Json result_json(const GenerateRequest& request, const GenerateResult& result, const LoadedModel& model) {
  Json json;
  json["prompt_ids"] = request.prompt;
  json["ids"] = result.ids;
  json["text"] = result.text;
  json["finish_reason"] = finish_reason_name(result.finish_reason);
  json["rounds"] = result.stats.rounds;
  json["drafted"] = result.stats.drafted;
  json["accepted"] = result.stats.accepted;
  json["mean_accepted"] = result.stats.mean_accepted();
  json["drafted_by_position"] = result.stats.drafted_by_position;
  json["accepted_by_position"] = result.stats.accepted_by_position;
  json["lengths"] = result.stats.lengths;
  json["depth"] = result.depth ? Json(*result.depth) : Json(nullptr);
  json["prefill_seconds"] = result.prefill_seconds;
  json["decode_seconds"] = result.decode_seconds;
  json["tokens_per_second"] = result.tokens_per_second();
  json["logits_hash"] = hash_text(result.logits_hash);
  json["seed"] = result.randomness ? Json(result.randomness->seed) : Json(nullptr);
  json["accept"] = result.randomness ? Json(accept_mode_name(result.randomness->mode)) : Json(nullptr);
  json["isa"] = model.isa();
  json["threads"] = model.threads();
  json["weights"] = model.weights_name();
  json["notes"] = result.notes;
  return json;
}

std::string summary(const GenerateRequest& request, const GenerateResult& result, const LoadedModel& model) {
  const DraftStats& stats = result.stats;
  char text[512];
  std::snprintf(text, sizeof text, "%zu tokens in %.2f s (%.1f tokens/s), prompt of %zu in %.2f s", result.ids.size(),
                result.decode_seconds, result.tokens_per_second(), request.prompt.size(), result.prefill_seconds);
  std::string line = text;
  if (result.finish_reason == FinishReason::kCancelled) line += ", interrupted";
  if (result.depth) {
    std::snprintf(text, sizeof text, "; depth %lld: drafted %lld, accepted %lld, %.2f a round",
                  static_cast<long long>(*result.depth), static_cast<long long>(stats.drafted),
                  static_cast<long long>(stats.accepted), stats.mean_accepted());
    line += text;
  } else {
    line += "; no draft";
  }
  for (const std::string& note : result.notes) line += " (" + note + ")";
  if (result.randomness) {
    line += "; seed " + std::to_string(result.randomness->seed) + ", accept " +
            std::string(accept_mode_name(result.randomness->mode));
  }
  return line + "; " + model.isa() + ", " + model.threads_text() + ", weights " + model.weights_name();
}

int run(const RunFlags& flags) {
  GenerateRequest request;
  request.max_tokens = flags.max_tokens;
  request.chunk = flags.chunk;
  request.hash = flags.json;
  request.draft = flags.depth != "off";
  if (request.draft && !flags.depth.empty()) {
    const auto depths = parse_numbers(flags.depth, "--depth (a number or off)", 0, 1 << 20);
    if (depths.size() != 1) throw Error("--depth = " + flags.depth + ": a number or off is needed");
    request.depth = depths.front();
  }
  LoadOptions options = flags.model.load_options();
  options.chunk = flags.chunk;

  // Everything cheap is checked before the weights are read.
  const OpenedModels opened = flags.model.open(request.draft);
  const GenerationConfig& generation = opened.target.generation;
  flags.sampling.apply(generation, request);
  request.prompt = read_prompt(flags, opened.target);
  check_request(request, {.vocab_width = opened.target.config.vocab_size,
                          .context = context_of(opened.target, options),
                          .longest_context = opened.target.config.max_position_embeddings,
                          .drafter = opened.draft != nullptr,
                          .tokenizer = opened.target.tokenizer != nullptr});
  for (const std::string& warning : flags.sampling.warnings(generation)) print_note(warning);

  LoadedModel model(opened.target, opened.draft.get(), options);
  for (const std::string& warning : model.warnings()) print_note(warning);
  TerminalSink sink(flags.json, opened.target.tokenizer == nullptr);
  catch_interrupt();  // not earlier: while a prompt is typed or weights are read there is nothing to finish
  const GenerateResult result = model.generator().generate(request, sink);

  if (flags.json) {
    print_json_line(result_json(request, result, model));
    std::fflush(stdout);
  } else if (!sink.closed()) {
    if (isatty(STDOUT_FILENO) != 0) std::fputc('\n', stderr);
    print_note(summary(request, result, model));
  }
  return interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace

Command add_run_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("run", "continue a text");
  auto flags = std::make_shared<RunFlags>();
  flags->model.add_to(*command, false);
  command->add_option("-p,--prompt", flags->prompt, "the text to continue, as it is")->type_name("TEXT");
  command->add_option("--prompt-file", flags->prompt_file, "a file with the text to continue")->type_name("FILE");
  command->add_option("--ids", flags->ids, "the token ids to continue, as they are: 1,2,3")->type_name("IDS");
  command->add_option("-n,--max-tokens", flags->max_tokens, "tokens to make, at most")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
      ->capture_default_str();
  command
      ->add_option("--depth", flags->depth,
                   "tokens to draft per round (default: as many as the draft was trained for); 0: keep the draft "
                   "informed, never ask it; off: do not load it")
      ->type_name("N|off");
  command->add_option("--chunk", flags->chunk, "prompt tokens per pass")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  flags->sampling.add_to(*command);
  command->add_flag("--json", flags->json, "print one JSON object instead of the text");
  command->footer(
      "The prompt is standard input when none of -p, --prompt-file and --ids is given.\n"
      "Example:\n"
      "  drafthorse run models/demo/target --draft models/demo/dflash -p 'def add(a, b):' -n 64");
  return {command, [flags] { return run(*flags); }};
}

}  // namespace drafthorse
