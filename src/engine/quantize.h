#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/loaded_model.h"
#include "ops/exec_context.h"

namespace drafthorse {

/// What quantize_folder made.
struct QuantizeResult {
  std::size_t layers = 0;    ///< linear layers, each a stack in kernel order
  std::uint64_t before = 0;  ///< bytes of all tensors in the folder read
  std::uint64_t after = 0;   ///< of model.safetensors in the folder made
  std::string weights;       ///< the type, or "file"
};

/// Makes the folder `out` from the target or draft in `in`: its linear layers packed as `weights` in the order the
/// kernels read (checkpoint/packed_stacks.h), every other tensor as it was, and a copy of its small files. Loading it
/// gives the bits that loading `in` with the same --weights gives, and packs nothing. One layer at a time is in memory.
/// `progress` (may be empty) is told bytes written, bytes in all. Throws Error when `in` holds packed layers already,
/// when `out` is there and not empty, and for all that loading `in` would refuse; then nothing is left behind.
QuantizeResult quantize_folder(const std::string& in, const std::string& out, const WeightsChoice& weights,
                               ExecContext& exec, const std::function<void(std::uint64_t, std::uint64_t)>& progress);

}  // namespace drafthorse
