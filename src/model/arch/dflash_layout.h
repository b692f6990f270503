#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/draft_config.h"
#include "checkpoint/draft_names.h"
#include "checkpoint/tensor_source.h"
#include "model/layers/attention_block.h"
#include "model/layers/weight_loader.h"
#include "model/registry.h"
#include "ops/attention.h"
#include "ops/exec_context.h"
#include "tensor/arena.h"

namespace drafthorse {

/// The names and shapes of a DFlash draft's tensors. Borrows config and options.
struct DflashLayout {
  const DraftConfig& config;
  const ModelOptions& options;
  DraftNames names;
  std::int64_t context;  ///< positions a sequence may hold: the target's
  bool aux_norms;        ///< each tap has a norm of its own

  /// Throws Error when `tensors` has no draft's names, or norms for some taps only.
  DflashLayout(const TensorSource& tensors, const DraftConfig& draft, const ModelOptions& how, std::int64_t positions);

  std::int64_t feature_width() const { return std::int64_t{config.taps()} * config.hidden_size; }
  AttentionBlockShape attention() const;

  std::string aux_norm(int tap) const { return names.prefix + "aux_hidden_norms." + std::to_string(tap) + ".weight"; }
  std::string attention_module(int layer) const { return names.layer(layer) + "self_attn"; }
  LinearSpec fc() const;
  std::vector<LinearSpec> mlp(int layer) const;

  /// What a layer needs, for messages about missing tensors.
  std::string attention_owner(int layer) const;
  std::string norm_owner(int layer) const;

  /// Every linear layer.
  std::vector<LinearSpec> linears(const TensorSource& tensors) const;
  /// Packed bytes of them all.
  std::uint64_t linear_bytes(const TensorSource& tensors) const;

 private:
  bool has_aux_norms(const TensorSource& tensors) const;
};

/// Which keys a block row of a layer sees, by their distance.
struct Visibility {
  bool causal = false;      ///< none after the row itself
  std::int64_t reach = -1;  ///< the largest distance, forwards and backwards; -1: any
  bool operator==(const Visibility&) const = default;
};
Visibility visibility(const DraftConfig& config, int layer);

/// Attention of `rows` block rows from position `first` on, over all context before them and over themselves.
AttentionPlan block_plan(const Visibility& rule, const AttentionShape& shape, std::int64_t first, std::int64_t rows,
                         Arena& scratch, const ExecContext& exec);

}  // namespace drafthorse
