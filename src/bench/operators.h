#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/registry.h"
#include "ops/exec_context.h"
#include "quant/weight_type.h"

namespace drafthorse {

/// Where the time of a pass goes: milliseconds by operator for `rows` rows, summed over all layers of `config`, each
/// operator run by itself on random weights of its own, so much of them that the cache does not help. Keys: qkv, o,
/// gate_up, down, head (packing of the rows included), attention (at kBenchContext). Norms, activations, rope and
/// embedding are what a whole pass takes beyond their sum.
std::map<std::string, double> measure_operators(const TargetConfig& config, WeightType weights, ElementType kv_type,
                                                std::int64_t rows, ExecContext& exec);

}  // namespace drafthorse
