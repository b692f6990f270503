#include "bench/report.h"

#include "base/error.h"
#include "bench/operators.h"
#include "bench/stopwatch.h"
#include "bench/synthetic_model.h"
#include "engine/free_memory.h"

namespace drafthorse {
namespace {

class SilentSink : public TokenSink {
 public:
  void emit(std::span<const std::int32_t>, std::string_view) override {}
};

/// Room for the context of a timed pass and its rows, in whole pages.
constexpr std::int64_t kPositions = kBenchContext + 64;
static_assert(PassTimer::kMaxRows <= 64);

ModelOptions model_options(const LoadOptions& options, std::int64_t context) {
  ModelOptions model;
  model.weights = options.weights.type();
  model.kv_type = options.kv_type.value_or(options.weights.kv_type());
  model.context = context;
  return model;
}

void fill_bytes(BenchReport& report, const TensorSource& tensors, const TargetConfig& config,
                const LoadOptions& options) {
  const MemoryNeed need = target_memory(tensors, config, model_options(options, kBenchContext), 1);
  report.weight_bytes = need.weights;
  report.kv_bytes = need.kv;
}

DecodeReport measure_decode(LoadedModel& model, const std::vector<std::int32_t>& prompt, std::int64_t tokens) {
  Generator generator = model.generator();
  SilentSink sink;
  GenerateRequest request;
  request.prompt = prompt;
  request.max_tokens = tokens;
  request.ignore_eos = true;
  request.hash = false;
  std::vector<double> plain;
  std::vector<double> speculative;
  DecodeReport report;
  for (int run = 0; run < kDecodeRuns; ++run) {
    request.draft = false;
    plain.push_back(generator.generate(request, sink).tokens_per_second());
    if (!model.drafter()) continue;
    request.draft = true;
    const GenerateResult result = generator.generate(request, sink);
    speculative.push_back(result.tokens_per_second());
    report.mean_accepted = result.stats.mean_accepted();
    report.depth = result.depth.value_or(0);
  }
  report.plain_tokens_per_second = median(plain);
  report.speculative_tokens_per_second = median(speculative);
  return report;
}

}  // namespace

double DecodeReport::speed_up() const {
  return plain_tokens_per_second > 0 ? speculative_tokens_per_second / plain_tokens_per_second : 0.0;
}

double BenchReport::bound_milliseconds() const {
  if (passes.read_gb_per_second <= 0) return 0.0;
  return static_cast<double>(weight_bytes + kv_bytes) / passes.read_gb_per_second / 1e6;
}

BenchReport bench_shape(const std::string& shape, const LoadOptions& options, double seconds) {
  const TargetConfig config = synthetic_config(shape);
  Machine machine(options.threads, options.isa);
  const SyntheticTensors tensors(config);
  const ModelOptions model = model_options(options, kPositions);
  require_memory({target_memory(tensors, config, model, PassTimer::kMaxRows), {}}, free_memory(), config.source);
  BenchReport report;
  report.isa = machine.isa();
  report.threads = machine.threads();
  report.weights = options.weights.type() ? options.weights.name() : "bf16";
  fill_bytes(report, tensors, config, options);
  {
    const std::unique_ptr<Model> target = load_target(tensors, config, model, machine.exec());
    report.passes = measure_passes(*target, machine.exec(), seconds);
  }
  for (const std::int64_t rows : {1, 8}) {
    report.operators[rows] = measure_operators(config, options.weights.type().value_or(WeightType::kBF16),
                                               model.kv_type, rows, machine.exec());
  }
  return report;
}

BenchReport bench_model(LoadedModel& model, const LoadOptions& options, const std::vector<std::int32_t>& prompt,
                        std::int64_t tokens, double seconds) {
  const std::int64_t context = model.target().facts().context;
  if (context < kBenchContext + PassTimer::kMaxRows) {
    throw Error(model.files().path() + ": its context of " + std::to_string(context) + " positions is less than the " +
                std::to_string(kBenchContext + PassTimer::kMaxRows) + " that passes are timed at");
  }
  BenchReport report;
  report.isa = model.isa();
  report.threads = model.threads();
  report.weights = model.weights_name();
  fill_bytes(report, *model.files().tensors, model.files().config, options);
  report.passes = measure_passes(model.target(), model.exec(), seconds);
  report.decode = measure_decode(model, prompt, tokens);
  return report;
}

}  // namespace drafthorse
