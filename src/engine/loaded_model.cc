#include "engine/loaded_model.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "base/error.h"
#include "engine/free_memory.h"
#include "quant/packed_matrix.h"
#include "speculative/dflash_drafter.h"

namespace drafthorse {
namespace {

ModelOptions model_options(const LoadOptions& options) {
  ModelOptions model;
  model.weights = options.weights.type();
  model.kv_type = options.kv_type.value_or(options.weights.kv_type());
  model.context = options.context;
  model.page_positions = options.page_positions;
  model.progress = options.progress;
  return model;
}

/// The type most bytes of the file's matrices have.
std::string prevailing_type(const TensorSource& tensors) {
  std::map<WeightType, std::uint64_t> bytes;
  for (const std::string& name : tensors.names()) {
    const TensorView& tensor = *tensors.find(name);
    if (tensor.packed) {
      bytes[*tensor.packed] += tensor.stored_bytes();
    } else if (tensor.shape.size() == 2 && is_float(tensor.type)) {
      bytes[natural_weight_type(tensor.type)] += tensor.stored_bytes();
    }
  }
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return std::string(weight_name(most == bytes.end() ? WeightType::kF32 : most->first));
}

std::uint64_t sum(const MemoryNeed& need) { return need.weights + need.kv + need.scratch; }

}  // namespace

WeightsChoice WeightsChoice::parse(std::string_view text) {
  WeightsChoice choice;
  choice.name_ = std::string(text);
  if (text == "file") return choice;
  choice.type_ = text == "exact" ? WeightType::kF32 : weight_type(text);
  if (!choice.type_) {
    throw Error("--weights = " + choice.name_ + ": unknown; it must be one of file, exact, " + weight_names());
  }
  return choice;
}

ElementType WeightsChoice::kv_type() const {
  return type_ == WeightType::kF32 ? ElementType::kF32 : ElementType::kBF16;
}

ElementType parse_kv_type(std::string_view text) {
  if (text == "bf16") return ElementType::kBF16;
  if (text == "f32") return ElementType::kF32;
  throw Error("--kv = " + std::string(text) + ": unknown; it must be bf16 or f32");
}

std::string bytes_text(std::uint64_t bytes) {
  char text[32];
  const double value = static_cast<double>(bytes);
  if (value >= 1e9) {
    std::snprintf(text, sizeof text, "%.1f GB", value / 1e9);
  } else if (value >= 1e6) {
    std::snprintf(text, sizeof text, "%.1f MB", value / 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.1f kB", value / 1e3);
  }
  return text;
}

std::uint64_t MemoryPlan::total() const { return sum(target) + sum(draft); }

MemoryPlan plan_memory(const TargetFiles& target, const DraftFiles* draft, const LoadOptions& options) {
  const ModelOptions model = model_options(options);
  const std::int64_t rows = std::min(options.chunk, context_of(target, options));  // no prompt is longer
  MemoryPlan plan;
  plan.target = target_memory(*target.tensors, target.config, model, rows);
  if (draft) {
    plan.draft = draft_memory(*draft->tensors, draft->config, target.config, model, rows);
    plan.draft.weights +=
        DraftHead::bytes(draft_head_choice(options.draft_head, target, *draft),
                         model.weights.value_or(WeightType::kF32), target.config.vocab_size, target.config.hidden_size);
  }
  return plan;
}

void require_memory(const MemoryPlan& plan, std::uint64_t free, const std::string& path) {
  if (plan.total() <= free) return;
  throw Error(path + ": needs " + bytes_text(plan.total()) + " (weights " +
                  bytes_text(plan.target.weights + plan.draft.weights) + ", keys and values of a full context " +
                  bytes_text(plan.target.kv + plan.draft.kv) + ", working memory " +
                  bytes_text(plan.target.scratch + plan.draft.scratch) + "), " + bytes_text(free) +
                  " free: choose a smaller --context or --chunk, or --weights q8_0",
              ErrorKind::kMemory);
}

std::vector<std::string> runnable_isas() {
  std::vector<std::string> names;
  for (const KernelTable* table : runnable_kernel_tables()) names.emplace_back(table->name);
  return names;
}

void require_isa(const std::string& name) {
  try {
    kernel_table(name);
  } catch (const Error& error) {
    throw Error(std::string("--isa: ") + error.what());
  }
}

std::int64_t context_of(const TargetFiles& target, const LoadOptions& options) {
  return options.context > 0 ? options.context : target.config.max_position_embeddings;
}

LoadedModel::LoadedModel(const TargetFiles& target, const DraftFiles* draft, const LoadOptions& options)
    : LoadedModel(target, draft, options, std::make_unique<Machine>(options.threads, options.isa, options.pin),
                  nullptr) {}

LoadedModel::LoadedModel(const TargetFiles& target, const DraftFiles* draft, const LoadOptions& options,
                         ExecContext& exec)
    : LoadedModel(target, draft, options, nullptr, &exec) {}

LoadedModel::LoadedModel(const TargetFiles& target, const DraftFiles* draft, const LoadOptions& options,
                         std::unique_ptr<Machine> machine, ExecContext* exec)
    : files_(target), machine_(std::move(machine)), exec_(exec ? exec : &machine_->exec()) {
  if (options.context > target.config.max_position_embeddings) {
    throw Error("--context = " + std::to_string(options.context) + ": " + target.config.source +
                ": max_position_embeddings = " + std::to_string(target.config.max_position_embeddings) +
                " is all this model holds");
  }
  if (draft) {
    check_pairing(draft->config, target.facts(), target.path());
    warnings_ = pairing_warnings(draft->config, target.facts());
  }
  require_memory(plan_memory(target, draft, options), free_memory(), target.path());
  const ModelOptions model = model_options(options);
  target_ = load_target(*target.tensors, target.config, model, *exec_);
  if (draft) {
    draft_ = load_draft(*draft->tensors, draft->config, *target_, model,
                        draft_head_choice(options.draft_head, target, *draft), *exec_);
    drafter_ = std::make_unique<DFlashDrafter>(*draft_);
  }
  weights_name_ = options.weights.type() ? options.weights.name() : prevailing_type(*target.tensors);
}

std::string LoadedModel::threads_text() const {
  const std::string text = std::to_string(threads()) + (threads() == 1 ? " thread" : " threads");
  return machine_ ? text + " (" + machine_->threads_reason() + ")" : text;
}

Generator LoadedModel::generator() {
  return Generator({.target = *target_,
                    .drafter = drafter_.get(),
                    .tokenizer = files_.tokenizer.get(),
                    .stop_ids = files_.stop_ids,
                    .exec = *exec_});
}

}  // namespace drafthorse
