#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/tensor_source.h"

namespace drafthorse {

/// Opens safetensors weights. `path` is a single file, or a folder in which the first of these is used:
///   model.safetensors.index.json  (every shard and every tensor it maps must be there; tensors it does not map are
///   left out) model.safetensors all model*.safetensors        (numbered "-00001-of-00003" files must be complete)
/// Everything is checked before the first byte of a weight is used: a short, gapped, overlapping or oversized file, an
/// element type that is not supported, a missing shard or tensor, a tensor in two shards. Throws Error naming the file,
/// the tensor, the expected and the actual bytes; missing shards and tensors are all listed in one error.
std::unique_ptr<TensorSource> open_safetensors(const std::string& path);

/// What one safetensors file holds.
struct SafetensorsFile {
  std::vector<TensorView> tensors;  ///< in the order of their bytes; packed ones last
  std::vector<PackedStack> stacks;
};
/// Reads the file held in `file`; `source` names it in errors. The views borrow from `file` and have no MappedFile.
/// Makes every check that concerns a single file.
SafetensorsFile parse_safetensors(std::span<const std::byte> file, const std::string& source);

}  // namespace drafthorse
