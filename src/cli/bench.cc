#include <cstdio>
#include <memory>
#include <string>

#include "base/cpu_features.h"
#include "base/error.h"
#include "base/json.h"
#include "bench/report.h"
#include "cli/command.h"
#include "cli/flags.h"

namespace drafthorse {
namespace {

constexpr double kPassSeconds = 6.0;  // of timing passes, per combination

struct BenchFlags {
  ModelFlags model;
  std::string shape;
  std::string prompt = "def fibonacci(n):\n";
  std::int64_t max_tokens = 128;
  bool json = false;
};

Json rows_json(const std::map<std::int64_t, double>& rows) {
  Json json = Json::object();
  for (const auto& [count, milliseconds] : rows) json[std::to_string(count)] = milliseconds;
  return json;
}

Json report_json(const BenchReport& report, const std::string& name) {
  Json json;
  json["cpu"] = cpu_name();
  json["isa"] = report.isa;
  json["threads"] = report.threads;
  json["commit"] = build_commit();
  json["read_gb_per_s"] = report.passes.read_gb_per_second;
  json["shape"] = name;
  json["weights"] = report.weights;
  json["context"] = kBenchContext;
  json["weight_bytes"] = report.weight_bytes;
  json["kv_bytes"] = report.kv_bytes;
  json["bound_ms"] = report.bound_milliseconds();
  json["rounds"] = report.passes.rounds;
  json["rows"] = rows_json(report.passes.milliseconds);
  json["ops"] = Json::object();
  for (const auto& [rows, operators] : report.operators) json["ops"][std::to_string(rows)] = operators;
  if (report.decode) {
    json["plain_tokens_per_second"] = report.decode->plain_tokens_per_second;
    json["speculative_tokens_per_second"] = report.decode->speculative_tokens_per_second;
    json["speed_up"] = report.decode->speed_up();
    json["mean_accepted"] = report.decode->mean_accepted;
    json["depth"] = report.decode->depth;
  }
  return json;
}

void print_report(const BenchReport& report, const std::string& name) {
  const double bound = report.bound_milliseconds();
  const auto& times = report.passes.milliseconds;
  const double one = times.at(1);
  std::printf("%s, %s, %d %s, weights %s, commit %s\n", cpu_name().c_str(), report.isa.c_str(), report.threads,
              report.threads == 1 ? "thread" : "threads", report.weights.c_str(), build_commit());
  std::printf("%s: a pass reads %s of weights and %s of keys and values; memory gives %.1f GB/s: %.2f ms at least\n",
              name.c_str(), bytes_text(report.weight_bytes).c_str(), bytes_text(report.kv_bytes).c_str(),
              report.passes.read_gb_per_second, bound);
  std::printf("rows       ms   /1 row   /bound\n");
  for (const auto& [rows, milliseconds] : times) {
    std::printf("%4lld %8.2f %8.2f %8.2f\n", static_cast<long long>(rows), milliseconds, milliseconds / one,
                milliseconds / bound);
  }
  for (const auto& [rows, operators] : report.operators) {
    double sum = 0.0;
    std::printf("ms of a pass with %lld %s:", static_cast<long long>(rows), rows == 1 ? "row" : "rows");
    for (const auto& [operation, milliseconds] : operators) {
      std::printf(" %s %.2f,", operation.c_str(), milliseconds);
      sum += milliseconds;
    }
    const auto pass = times.find(rows);
    if (pass != times.end()) std::printf(" the rest %.2f", pass->second - sum);
    std::printf("\n");
  }
  if (report.decode) {
    std::printf("decoding: plain %.1f tokens/s", report.decode->plain_tokens_per_second);
    if (report.decode->speculative_tokens_per_second > 0) {
      std::printf(", with the draft %.1f (%.2f x; depth %lld, %.2f accepted a round)",
                  report.decode->speculative_tokens_per_second, report.decode->speed_up(),
                  static_cast<long long>(report.decode->depth), report.decode->mean_accepted);
    }
    std::printf("\n");
  }
}

BenchReport measure(const BenchFlags& flags, const OpenedModels& opened, const LoadOptions& options) {
  if (!flags.shape.empty()) return bench_shape(flags.shape, options, kPassSeconds);
  const auto prompt =
      opened.target.tokenizer ? encode_prompt(opened.target, flags.prompt, "-p") : std::vector<std::int32_t>{0};
  LoadedModel model(opened.target, opened.draft.get(), options);
  return bench_model(model, options, prompt, flags.max_tokens, kPassSeconds);
}

int bench(const BenchFlags& flags) {
  OpenedModels opened;
  if (flags.shape.empty()) {
    opened = flags.model.open(true);
  } else if (flags.model.model || !flags.model.drafts.empty() || flags.model.asks_for_draft_head()) {
    throw Error("--shape times random weights: it takes no MODEL, no --draft, and no --draft-vocab or --draft-head");
  }
  const std::string name = flags.shape.empty() ? opened.target.path() : flags.shape;
  const std::vector<LoadOptions> combinations = flags.model.load_combinations();
  Json all = Json::array();
  for (const LoadOptions& options : combinations) {
    const BenchReport report = measure(flags, opened, options);
    if (flags.json) {
      all.push_back(report_json(report, name));
    } else {
      print_report(report, name);
      std::fflush(stdout);
    }
  }
  if (flags.json) print_json_line(all.size() == 1 ? all.front() : all);
  return kExitOk;
}

}  // namespace

Command add_bench_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("bench", "pass times by rows against the memory's limit, and decoding speed");
  auto flags = std::make_shared<BenchFlags>();
  flags->model.add_to(*command, true);
  command->add_option("--shape", flags->shape, "time random weights in the shape of Qwen3 0.6b or 4b; needs no files")
      ->type_name("0.6b|4b");
  command->add_option("-p,--prompt", flags->prompt, "the text that decoding continues")->type_name("TEXT");
  command->add_option("-n,--max-tokens", flags->max_tokens, "tokens that decoding makes")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print one JSON object, a list of them for several combinations");
  command->footer(
      "A pass is a whole forward at a context of 512, with the head and the argmax of every row. All times are "
      "medians.\n"
      "Example:\n  drafthorse bench --shape 0.6b --weights q8_0,bf16");
  return {command, [flags] { return bench(*flags); }};
}

}  // namespace drafthorse
