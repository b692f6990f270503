#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/tensor_source.h"

namespace drafthorse {

/// Whether the modules of a linear layer have a ".bias". A bias that is there and not wanted is left over and refused
/// as such.
enum class BiasRule : std::uint8_t { kNone, kRequired, kOptional };

/// Rows [first, first + rows) of the [total, cols] tensor "<module>.weight" (and of "<module>.bias").
struct LinearPart {
  std::string module;
  std::int64_t rows = 0;
  std::int64_t first = 0;
  std::int64_t total = 0;  ///< 0: `rows`

  std::int64_t total_rows() const { return total == 0 ? rows : total; }
};

/// A linear layer as the file holds it: parts with equal inputs, stacked in order. Stacking changes no value.
struct LinearSpec {
  std::vector<LinearPart> parts;
  std::int64_t cols = 0;
  BiasRule bias = BiasRule::kNone;
  std::string owner;  ///< for messages: "the attention of layer 3 needs q_proj, k_proj, .."

  std::int64_t rows() const;
  /// The parts as a file's stacks name them.
  std::vector<StackPart> stack_parts() const;
};

/// What of a model's file is linear layers.
struct LinearInventory {
  std::vector<LinearSpec> linears;
  std::set<std::string> also_plain;  ///< matrices of theirs that are looked up row by row as well
  std::set<std::string> unused;      ///< tensors that are there and passed over
};

}  // namespace drafthorse
