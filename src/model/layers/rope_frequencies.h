#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/rope_config.h"
#include "ops/rope_table.h"

namespace drafthorse {

/// Inverse frequencies of the rotary_dims / 2 pairs: theta^(-2i / rotary_dims), stretched as the kind says (RoFormer
/// 2021; position interpolation, arXiv 2306.15595; Llama 3.1; YaRN, arXiv 2309.00071). Radians per position, the same
/// bits on every machine.
std::vector<double> inverse_frequencies(const RopeConfig& rope);

/// The table of a config for positions [0, positions); YaRN's attention factor is in it, once for q and once for k.
RopeTable rope_table(const RopeConfig& rope, std::int64_t positions, ThreadPool& pool);

}  // namespace drafthorse
