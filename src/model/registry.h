#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/draft_config.h"
#include "checkpoint/target_config.h"
#include "checkpoint/tensor_source.h"
#include "model/draft_model.h"
#include "model/layers/draft_head.h"
#include "model/model.h"
#include "ops/exec_context.h"
#include "quant/weight_type.h"

namespace drafthorse {

struct LinearInventory;

/// How a model is held in memory.
struct ModelOptions {
  std::optional<WeightType> weights;  ///< of every linear layer and the head; none: each tensor as the file has it
  ElementType kv_type = ElementType::kBF16;  ///< kBF16 or kF32
  std::int64_t context = 0;                  ///< positions a sequence may hold; 0: the config's max_position_embeddings
  std::int64_t page_positions = 64;          ///< of the caches
  /// Told how far loading is: bytes packed, bytes in all. May be empty.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

/// Bytes a model will take, for the check before loading.
struct MemoryNeed {
  std::uint64_t weights = 0;  ///< packed weights that are not read from the mapped file
  std::uint64_t kv = 0;       ///< one sequence at the full context
  std::uint64_t scratch = 0;  ///< an upper bound of a forward's own memory at `rows` rows
};
MemoryNeed target_memory(const TensorSource& tensors, const TargetConfig& config, const ModelOptions& options,
                         std::int64_t rows);
MemoryNeed draft_memory(const TensorSource& tensors, const DraftConfig& config, const TargetConfig& target,
                        const ModelOptions& options, std::int64_t rows);

/// The linear layers of a file, as load_target and load_draft would ask for them. Throws their Errors about names, not
/// about shapes and values.
LinearInventory target_linears(const TensorSource& tensors, const TargetConfig& config);
LinearInventory draft_linears(const TensorSource& tensors, const DraftConfig& config);

/// Builds the network of config.architecture from its tensors. Every tensor that is missing, has a wrong shape, or is
/// left over is an Error naming file and tensor. `tensors` and `exec` outlive the model (embedding rows are read from
/// the mapped file).
std::unique_ptr<Model> load_target(const TensorSource& tensors, const TargetConfig& config, const ModelOptions& options,
                                   ExecContext& exec);
/// The same for a draft, bound to `target`, which outlives it, and to its head or a copy of it. Pairing is checked
/// first, before any weight is read.
std::unique_ptr<DraftModel> load_draft(const TensorSource& tensors, const DraftConfig& config, DraftTarget& target,
                                       const ModelOptions& options, const DraftHeadChoice& head, ExecContext& exec);

}  // namespace drafthorse
