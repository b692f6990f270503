#include "cli/flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "cli/demo_pair.h"
#include "cli/load_progress.h"
#include "quant/weight_type.h"
#include "tokenizer/utf8.h"

namespace drafthorse {
namespace {

constexpr std::int64_t kMaxThreads = 1024;

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

void check_range(const char* flag, const std::optional<double>& value, double low, double high, const char* range) {
  if (!value) return;
  if (!(*value >= low && *value <= high)) {
    char text[64];
    std::snprintf(text, sizeof text, "%g", *value);
    throw Error(std::string(flag) + " = " + text + ": must be " + range);
  }
}

}  // namespace

std::vector<std::int64_t> parse_numbers(const std::string& text, const std::string& flag, std::int64_t low,
                                        std::int64_t high) {
  std::vector<std::int64_t> numbers;
  for (std::string_view part : split(text)) {
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || end != part.data() + part.size() || number < low || number > high) {
      throw Error(flag + ": '" + std::string(part) + "' is not a whole number from " + std::to_string(low) + " to " +
                  std::to_string(high));
    }
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<std::int32_t> parse_ids(const std::string& text, const std::string& flag) {
  const auto numbers = parse_numbers(text, flag, 0, std::numeric_limits<std::int32_t>::max());
  return {numbers.begin(), numbers.end()};
}

std::vector<std::int32_t> ids_of_json(const JsonObject& object) {
  const auto numbers = object.integers("ids");
  if (!numbers) object.fail("ids", "a list of token ids is needed");
  std::vector<std::int32_t> ids;
  for (const std::int64_t id : *numbers) {
    if (id < 0 || id > std::numeric_limits<std::int32_t>::max())
      object.fail("ids", "a token id is a whole number from 0");
    ids.push_back(static_cast<std::int32_t>(id));
  }
  return ids;
}

std::vector<std::string> parse_words(const std::string& text, const std::string& flag) {
  std::vector<std::string> words;
  for (const std::string_view part : split(text)) {
    if (part.empty()) throw Error(flag + " = " + text + ": there is an empty entry");
    words.emplace_back(part);
  }
  return words;
}

void ModelFlags::add_to(CLI::App& command, bool lists) {
  const std::string list = lists ? " (a comma list: each in turn)" : "";
  command.add_option("MODEL", model, "folder of the target model (default: the demonstration pair)")->type_name("DIR");
  command.add_option("--draft", drafts, "folder of the draft model")->type_name("DIR")->allow_extra_args(false);
  command
      .add_option(
          "--draft-vocab", draft_vocab,
          "ids the draft can name: all, file (draft_vocab.json of the draft), or the N commonest (default: file "
          "if there is one, else all)" +
              list)
      ->type_name("V");
  command
      .add_option("--draft-head", draft_head,
                  "output head for drafting only: target (the default), q4, or a weight type" + list)
      ->type_name("T");
  command.add_option("--context", context, "positions a text may take (default: what the model allows)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 31));
  command.add_option("--weights", weights, weight_names() + ", exact, or file: as the files have them" + list)
      ->type_name("T")
      ->capture_default_str();
  command
      .add_option("--kv", kv,
                  "type of keys and values: bf16 or f32 (default: f32 with f32 and exact weights, else bf16)")
      ->type_name("T");
  command
      .add_option("--threads", threads, "threads to compute with (default: one a core, fewer under a CPU quota)" + list)
      ->type_name("N");
  command.add_flag("--pin", pin, "bind every thread to a CPU of its own");
  command
      .add_option("--isa", isa,
                  "kernels to force: scalar, avx2-base, avx2, avx512-base, avx512 (default: the best)" + list +
                      (lists ? "; all: every one this CPU runs" : ""))
      ->type_name("I");
}

OpenedModels ModelFlags::open(bool with_draft) const {
  if (drafts.size() > 1) throw Error("--draft: given " + std::to_string(drafts.size()) + " times; one draft is used");
  if (model && model->empty()) throw Error("MODEL: the folder's name is empty");
  OpenedModels opened;
  std::string draft = drafts.empty() ? "" : drafts.front();
  if (!drafts.empty() && draft.empty()) throw Error("--draft: the folder's name is empty");
  if (!model) {
    const DemoPair demo = find_demo_pair();
    opened.target = open_target(demo.target);
    if (draft.empty()) draft = demo.draft;
  } else {
    opened.target = open_target(*model);
  }
  if (with_draft && draft.empty() && asks_for_draft_head()) {
    throw Error(std::string(draft_vocab.empty() ? "--draft-head" : "--draft-vocab") +
                ": there is no draft; give --draft DIR");
  }
  if (with_draft && !draft.empty()) {
    opened.draft = std::make_unique<DraftFiles>(open_draft(draft));
    check_pairing(opened.draft->config, opened.target.facts(), opened.target.path());
  }
  return opened;
}

LoadOptions ModelFlags::load_options() const {
  return load_options(weights, threads, isa, DraftHeadOptions::parse(draft_vocab, draft_head));
}

LoadOptions ModelFlags::load_options(const std::string& one_weights, const std::string& one_threads,
                                     const std::string& one_isa, const DraftHeadOptions& head) const {
  LoadOptions options;
  options.draft_head = head;
  options.weights = WeightsChoice::parse(one_weights);
  if (!kv.empty()) options.kv_type = parse_kv_type(kv);
  options.context = context;
  if (!one_threads.empty()) {
    const auto count = parse_numbers(one_threads, "--threads", 1, kMaxThreads);
    if (count.size() != 1) throw Error("--threads = " + one_threads + ": one number is needed");
    options.threads = static_cast<int>(count.front());
  }
  options.pin = pin;
  if (!one_isa.empty()) require_isa(one_isa);
  options.isa = one_isa;
  options.progress = load_progress("loading");
  return options;
}

std::vector<LoadOptions> ModelFlags::load_combinations() const {
  const auto words = [](const std::string& text, const char* flag) {
    return text.empty() ? std::vector<std::string>{""} : parse_words(text, flag);
  };
  std::vector<DraftHeadOptions> heads;
  for (const std::string& one_vocab : words(draft_vocab, "--draft-vocab")) {
    for (const std::string& one_head : words(draft_head, "--draft-head")) {
      heads.push_back(DraftHeadOptions::parse(one_vocab, one_head));
    }
  }
  const auto isas = isa == "all" ? runnable_isas() : words(isa, "--isa");
  std::vector<LoadOptions> combinations;
  for (const std::string& one_isa : isas) {
    for (const std::string& one_weights : words(weights, "--weights")) {
      for (const std::string& one_threads : words(threads, "--threads")) {
        for (const DraftHeadOptions& head : heads) {
          combinations.push_back(load_options(one_weights, one_threads, one_isa, head));
        }
      }
    }
  }
  return combinations;
}

void SamplingFlags::add_to(CLI::App& command) {
  command.add_option("--temperature", temperature, "0: greedy (default: the model's generation_config.json, else 0)")
      ->type_name("X");
  command.add_option("--top-k", top_k, "keep the K likeliest tokens; 0: all")->type_name("K");
  command.add_option("--top-p", top_p, "keep the likeliest tokens up to this probability together; 1: all")
      ->type_name("P");
  command.add_option("--min-p", min_p, "drop tokens below this fraction of the likeliest one's probability; 0: none")
      ->type_name("P");
  // A plain conversion would turn -1 and 2^64 into other seeds without a word.
  const auto whole = [](const std::string& text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return std::string();
    return text + " is not a whole number from 0 to 18446744073709551615";
  };
  command.add_option("--seed", seed, "makes sampling repeatable (default: one is drawn and shown)")
      ->type_name("N")
      ->check(CLI::Validator(whole, "", "whole"));
  command
      .add_option("--accept", accept,
                  "how drafts are judged when sampling: coupled (same text with and without a draft), rejection (same "
                  "distribution), auto (coupled with --seed, else rejection)")
      ->type_name("A")
      ->capture_default_str();
  command.add_option("--stop", stops, "end the text before this string; may be repeated")
      ->type_name("S")
      ->allow_extra_args(false);
  command.add_flag("--ignore-eos", ignore_eos, "go on after an end token");
}

void SamplingFlags::apply(const GenerationConfig& config, GenerateRequest& request) const {
  const SamplingDefaults& defaults = config.sampling;
  const double infinity = std::numeric_limits<double>::infinity();
  check_range("--temperature", temperature, 0.0, 1e6, "from 0 to 1000000");
  check_range("--top-p", top_p, std::numeric_limits<double>::min(), 1.0, "above 0 and at most 1");
  check_range("--min-p", min_p, 0.0, 1.0, "from 0 to 1");
  if (top_k) check_range("--top-k", static_cast<double>(*top_k), 0.0, infinity, "0 or more");
  SamplingParams& params = request.sampling;
  params.temperature =
      static_cast<float>(temperature.value_or(defaults.temperature.value_or(config.do_sample ? 1.0 : 0.0)));
  params.top_k = top_k.value_or(defaults.top_k.value_or(0));
  // Not below the smallest float: 0 would mean that the filter is off.
  params.top_p =
      std::max(static_cast<float>(top_p.value_or(defaults.top_p.value_or(1.0))), std::numeric_limits<float>::min());
  params.min_p = static_cast<float>(min_p.value_or(defaults.min_p.value_or(0.0)));
  params.seed = seed;
  request.accept = parse_accept_mode(accept);
  for (const std::string& stop : stops) {
    if (stop.empty()) throw Error("--stop: the string is empty");
    require_utf8(stop, "--stop");
  }
  request.stops = stops;
  request.ignore_eos = ignore_eos;
}

std::vector<std::string> SamplingFlags::warnings(const GenerationConfig& config) const {
  const bool greedy = temperature ? *temperature <= 0.0 : !config.do_sample || config.sampling.temperature == 0.0;
  if (greedy) return idle_flags();
  if (!config.do_sample) return {};
  std::vector<std::string> keys = config.unsupported;
  if (config.sampling.repetition_penalty.value_or(1.0) != 1.0) keys.emplace_back("repetition_penalty");
  std::vector<std::string> lines;
  for (const std::string& key : keys) {
    lines.push_back("warning: generation_config.json: " + key + ": not supported, the text is made without it");
  }
  return lines;
}

std::vector<std::string> SamplingFlags::idle_flags() const {
  std::string idle;
  const auto add = [&idle](bool given, const char* flag) {
    if (given) idle += (idle.empty() ? "" : ", ") + std::string(flag);
  };
  add(top_k.has_value(), "--top-k");
  add(top_p.has_value(), "--top-p");
  add(min_p.has_value(), "--min-p");
  add(seed.has_value(), "--seed");
  add(parse_accept_mode(accept).has_value(), "--accept");
  if (idle.empty()) return {};
  return {"warning: without a --temperature above 0 the likeliest token is always taken: no effect: " + idle};
}

std::string read_standard_input() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

void require_utf8(std::string_view text, const std::string& source) {
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
    throw Error(source + ": not valid UTF-8 at byte " + std::to_string(bad) + ": convert it to UTF-8");
  }
}

std::vector<std::int32_t> encode_prompt(const TargetFiles& files, const std::string& text, const std::string& source) {
  if (!files.tokenizer) {
    throw Error(files.path() + ": has no tokenizer.json, so a prompt must be given as --ids");
  }
  require_utf8(text, source);
  return files.tokenizer->encode(text, {.add_special = true});
}

void print_json_line(const Json& json) { std::printf("%s\n", json.dump(-1, ' ', true).c_str()); }

std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      shown += c;
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned>(byte));
      shown += escaped;
    }
  }
  return shown;
}

void print_note(const std::string& text) { std::fprintf(stderr, "drafthorse: %s\n", printable(text).c_str()); }

}  // namespace drafthorse
