#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/exec_context.h"
#include "sampling/distribution.h"
#include "sampling/sampling_params.h"
#include "tensor/rows.h"

namespace drafthorse {

class Sampler {
 public:
  Sampler(const SamplingParams& params, AcceptMode mode, std::uint64_t seed, std::int64_t vocab_width, const ExecContext& exec);
};

}  // namespace drafthorse
