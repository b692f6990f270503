#include "checkpoint/tensor_source.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/json.h"

namespace drafthorse {

std::int64_t TensorView::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

std::uint64_t TensorView::stored_bytes() const {
  if (!packed) return bytes.size();
  constexpr auto kBlock = static_cast<std::uint64_t>(kTileRows * kGroup);
  return static_cast<std::uint64_t>(elements()) / kBlock * group_bytes(*packed) +
         static_cast<std::uint64_t>(elements()) % kBlock * group_bytes(*packed) / kBlock;
}

std::string TensorView::type_text() const {
  std::string text(packed ? weight_name(*packed) : element_name(type));
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); });
  return text;
}

std::int64_t PackedStack::rows() const {
  std::int64_t sum = 0;
  for (const StackPart& part : parts) sum += part.rows;
  return sum;
}

const PackedStack* TensorSource::find_stack(std::span<const StackPart> parts) const {
  const std::span<const PackedStack> all = stacks();
  const auto at = std::find_if(all.begin(), all.end(), [&](const PackedStack& stack) {
    return std::equal(stack.parts.begin(), stack.parts.end(), parts.begin(), parts.end());
  });
  return at == all.end() ? nullptr : &*at;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::string tensor_text(std::string_view name) { return "tensor " + brief(Json(std::string(name))); }

const TensorView& TensorSource::require(std::string_view name, const std::vector<std::int64_t>& shape) const {
  const TensorView* tensor = find(name);
  if (tensor == nullptr) {
    throw Error(path() + ": " + tensor_text(name) + " of shape " + shape_text(shape) + " is missing");
  }
  const std::string where = (tensor->file != nullptr ? tensor->file->path() : path()) + ": " + tensor_text(name);
  if (tensor->shape != shape) {
    throw Error(where + ": shape " + shape_text(tensor->shape) + " where the config asks for " + shape_text(shape));
  }
  if (!is_float(tensor->type)) {
    throw Error(where + ": element type " + tensor->type_text() +
                " where a float type (F64, F32, F16, BF16) is expected");
  }
  return *tensor;
}

}  // namespace drafthorse
