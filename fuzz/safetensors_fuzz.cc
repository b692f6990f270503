// Feeds arbitrary bytes to the safetensors reader. Anything but a clean Error or views that lie inside the file is a
// fault.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "quant/packed_matrix.h"

namespace {

/// The first byte chooses: a whole file as it is, or header text and data apart at the first zero byte with a matching
/// length written in front, which reaches the checks behind the length without having to guess it.
std::vector<std::byte> make_file(std::span<const std::uint8_t> input) {
  std::vector<std::byte> file;
  if (input.empty()) return file;
  const auto rest = input.subspan(1);
  if (input[0] % 4 != 0) {
    const auto zero = std::find(rest.begin(), rest.end(), 0);
    const auto length = static_cast<std::uint64_t>(zero - rest.begin());
    for (int i = 0; i < 8; ++i) file.push_back(static_cast<std::byte>(length >> (8 * i)));
    std::transform(rest.begin(), zero, std::back_inserter(file), [](std::uint8_t b) { return std::byte{b}; });
    if (zero != rest.end()) {
      std::transform(zero + 1, rest.end(), std::back_inserter(file), [](std::uint8_t b) { return std::byte{b}; });
    }
  } else {
    std::transform(rest.begin(), rest.end(), std::back_inserter(file), [](std::uint8_t b) { return std::byte{b}; });
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::byte> file = make_file({data, size});
  try {
    const drafthorse::SafetensorsFile parsed = drafthorse::parse_safetensors(file, "fuzz");
    std::uint64_t total = 0;
    volatile std::uint8_t sink = 0;
    const auto read = [&](std::span<const std::byte> bytes) {
      for (const std::byte byte : bytes) sink = std::to_integer<std::uint8_t>(byte);
      total += bytes.size();
    };
    for (const drafthorse::TensorView& view : parsed.tensors) {
      if (view.packed) {
        if (!view.bytes.empty()) std::abort();
        continue;
      }
      const auto expected = static_cast<std::uint64_t>(view.elements()) * drafthorse::element_bytes(view.type);
      if (view.bytes.size() != expected) std::abort();
      read(view.bytes);
    }
    for (const drafthorse::PackedStack& stack : parsed.stacks) {
      if (stack.bytes.size() != drafthorse::packed_bytes(stack.type, stack.rows(), stack.cols)) std::abort();
      read(stack.bytes);
    }
    (void)sink;
    if (total > file.size()) std::abort();  // views never overlap
  } catch (const drafthorse::Error& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
