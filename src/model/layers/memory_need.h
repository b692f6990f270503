#pragma once

#include <cstdint>

#include "model/layers/attention_block.h"
#include "model/registry.h"

namespace drafthorse {

/// What the memory of a transformer of attention blocks and gated MLPs depends on.
struct NetworkSize {
  std::uint64_t linear_bytes = 0;  ///< packed
  std::int64_t layers = 0;
  std::int64_t intermediate = 0;
  std::int64_t feature_width =
      0;  ///< columns of the widest row beside those of the layers: taps of a target, features of a draft
  std::int64_t rotary_dims = 0;
  std::int64_t context = 0;
  AttentionBlockShape attention;
};

MemoryNeed memory_need(const NetworkSize& size, std::int64_t rows);

}  // namespace drafthorse
