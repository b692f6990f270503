#pragma once

#include <cstdint>
#include <memory>

#include "checkpoint/target_config.h"
#include "checkpoint/tensor_source.h"
#include "model/model.h"
#include "model/registry.h"
#include "ops/exec_context.h"

namespace drafthorse {

/// Qwen2 and Qwen2.5 (biases on q, k, v) and Qwen3 dense (q and k normed per head), Qwen team, 2024-2025. Contracts of
/// load_target, target_memory and target_linears.
std::unique_ptr<Model> load_qwen(const TensorSource& tensors, const TargetConfig& config, const ModelOptions& options,
                                 ExecContext& exec);
MemoryNeed qwen_memory(const TensorSource& tensors, const TargetConfig& config, const ModelOptions& options,
                       std::int64_t rows);
LinearInventory qwen_linears(const TensorSource& tensors, const TargetConfig& config);

}  // namespace drafthorse
