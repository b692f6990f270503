#include "model/registry.h"

#include "base/error.h"
#include "model/arch/dflash.h"
#include "model/arch/qwen.h"
#include "model/layers/linear_spec.h"

namespace drafthorse {
namespace {

void require_known_network(const DraftConfig& config) {
  if (config.family != DraftFamily::kDflash2) return;
  throw Error(config.source + ": architectures = " + config.architecture +
              ": DFlash2 drafts are not supported yet, a later version brings them; use a DFlash draft");
}

}  // namespace

MemoryNeed target_memory(const TensorSource& tensors, const TargetConfig& config, const ModelOptions& options,
                         std::int64_t rows) {
  switch (config.family) {
    case TargetFamily::kQwen2:
    case TargetFamily::kQwen3:
      return qwen_memory(tensors, config, options, rows);
  }
  throw InternalError("target family without a network");
}

MemoryNeed draft_memory(const TensorSource& tensors, const DraftConfig& config, const TargetConfig& target,
                        const ModelOptions& options, std::int64_t rows) {
  require_known_network(config);
  return dflash_memory(tensors, config, target, options, rows);
}

LinearInventory target_linears(const TensorSource& tensors, const TargetConfig& config) {
  switch (config.family) {
    case TargetFamily::kQwen2:
    case TargetFamily::kQwen3:
      return qwen_linears(tensors, config);
  }
  throw InternalError("target family without a network");
}

LinearInventory draft_linears(const TensorSource& tensors, const DraftConfig& config) {
  require_known_network(config);
  return dflash_linears(tensors, config);
}

std::unique_ptr<Model> load_target(const TensorSource& tensors, const TargetConfig& config, const ModelOptions& options,
                                   ExecContext& exec) {
  switch (config.family) {
    case TargetFamily::kQwen2:
    case TargetFamily::kQwen3:
      return load_qwen(tensors, config, options, exec);
  }
  throw InternalError("target family without a network");
}

std::unique_ptr<DraftModel> load_draft(const TensorSource& tensors, const DraftConfig& config, DraftTarget& target,
                                       const ModelOptions& options, const DraftHeadChoice& head, ExecContext& exec) {
  const ModelFacts& facts = target.facts();
  check_pairing(
      config,
      {static_cast<int>(facts.layers), static_cast<int>(facts.hidden_width), static_cast<int>(facts.vocab_width)},
      facts.architecture);
  require_known_network(config);
  return load_dflash(tensors, config, target, options, head, exec);
}

}  // namespace drafthorse
