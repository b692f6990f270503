#pragma once

#include <cstdint>
#include <memory>

#include "checkpoint/draft_config.h"
#include "checkpoint/target_config.h"
#include "checkpoint/tensor_source.h"
#include "model/draft_model.h"
#include "model/registry.h"
#include "ops/exec_context.h"

namespace drafthorse {

/// Block-diffusion drafts ("DFlash: block diffusion for flash speculative decoding"): DFlash itself, its Laguna variant
/// and MuseGlimmer's. Contracts of load_draft, draft_memory and draft_linears.
std::unique_ptr<DraftModel> load_dflash(const TensorSource& tensors, const DraftConfig& config, DraftTarget& target,
                                        const ModelOptions& options, const DraftHeadChoice& head, ExecContext& exec);
MemoryNeed dflash_memory(const TensorSource& tensors, const DraftConfig& config, const TargetConfig& target,
                         const ModelOptions& options, std::int64_t rows);
LinearInventory dflash_linears(const TensorSource& tensors, const DraftConfig& config);

}  // namespace drafthorse
