#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_source.h"

namespace drafthorse {

/// How matrices in kernel order lie in a safetensors file: each stack is a U8 tensor of its stream, and the metadata
/// key kPackedKey holds JSON text that says what the bytes are:
///   {"layout": 1, "stacks": [{"tensor": "packed.0", "type": "q4_k", "cols": 1024,
///                             "parts": [{"name": "..q_proj.weight", "rows": 2048, "first": 0, "total": 2048}, ..]}]}
/// `layout` counts changes of the streams of quant/packed_matrix.h; every kernel table reads the same streams.
inline constexpr std::string_view kPackedKey = "drafthorse.packed";
inline constexpr std::int64_t kPackedLayout = 1;

/// Takes the stacks that `description` (the value of kPackedKey) names out of `tensors`, and puts a packed TensorView
/// in for each matrix that is not there in plain form too. `file` holds the tensors' bytes; `source` names it in
/// errors. Throws Error for another layout, and for every entry that does not fit its tensor or another entry.
std::vector<PackedStack> take_packed_stacks(const std::string& description, std::span<const std::byte> file,
                                            const std::string& source, std::vector<TensorView>& tensors);

/// The text for kPackedKey; stack i is the tensor stack_tensor(i).
std::string describe_packed_stacks(std::span<const PackedStack> stacks);
/// "packed.7".
std::string stack_tensor(std::size_t index);

}  // namespace drafthorse
