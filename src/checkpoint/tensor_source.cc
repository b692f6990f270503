#include "checkpoint/tensor_source.h"

#include "base/error.h"
#include "base/json.h"

namespace drafthorse {

std::int64_t TensorView::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
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
    throw Error(where + ": element type " + std::string(element_name(tensor->type)) +
                " where a float type (F64, F32, F16, BF16) is expected");
  }
  return *tensor;
}

}  // namespace drafthorse
