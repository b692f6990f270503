#include "model/layers/weight_loader.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace drafthorse {
namespace {

std::uint64_t padded_rows(const LinearSpec& spec) {
  return static_cast<std::uint64_t>((spec.rows() + kTileRows - 1) / kTileRows * kTileRows);
}

bool has_bias(const LinearSpec& spec, const TensorSource& tensors) {
  if (spec.bias != BiasRule::kOptional) return spec.bias == BiasRule::kRequired;
  return std::any_of(spec.parts.begin(), spec.parts.end(),
                     [&](const LinearPart& part) { return tensors.has(part.module + ".bias"); });
}

std::string place(const TensorView& view, const TensorSource& tensors) {
  return (view.file != nullptr ? view.file->path() : tensors.path()) + ": tensor \"" + view.name + "\"";
}

void require_finite(std::span<const float> values, const TensorView& view, const TensorSource& tensors) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    throw Error(place(view, tensors) + ": value " + std::to_string(i) + " is not a finite number; the file is damaged");
  }
}

}  // namespace

WeightType held_type(const LinearSpec& spec, const TensorSource& tensors, const ModelOptions& options) {
  if (const PackedStack* stack = tensors.find_stack(spec.stack_parts())) return stack->type;
  if (options.weights.has_value()) return *options.weights;
  std::optional<WeightType> common;
  for (const LinearPart& part : spec.parts) {
    const TensorView* view = tensors.find(part.module + ".weight");
    const WeightType type =
        view == nullptr || !is_float(view->type) ? WeightType::kF32 : natural_weight_type(view->type);
    if (common.value_or(type) != type) return WeightType::kF32;
    common = type;
  }
  return common.value_or(WeightType::kF32);
}

std::uint64_t held_bytes(const LinearSpec& spec, const TensorSource& tensors, const ModelOptions& options) {
  const std::uint64_t rows = padded_rows(spec);
  const WeightType type = held_type(spec, tensors, options);
  const auto groups = static_cast<std::uint64_t>(padded_groups(type, spec.cols));
  const std::uint64_t weights = rows / kTileRows * groups * group_bytes(type);
  return weights + (has_bias(spec, tensors) ? rows * sizeof(float) : 0);
}

const TensorView& WeightLoader::require(const std::string& name, const std::vector<std::int64_t>& shape,
                                        const std::string& owner) {
  const TensorView* view = tensors_.find(name);
  if (view == nullptr) {
    throw Error(tensors_.path() + ": tensor \"" + name + "\" of shape " + shape_text(shape) + " is missing: " + owner);
  }
  used_.insert(name);
  if (!is_float(view->type)) {
    throw Error(place(*view, tensors_) + ": element type " + view->type_text() +
                " where a float type is expected: " + owner);
  }
  return tensors_.require(name, shape);
}

AlignedBuffer WeightLoader::stacked_bias(const LinearSpec& spec) {
  if (!has_bias(spec, tensors_)) return {};
  AlignedBuffer bias(padded_rows(spec) * sizeof(float));
  std::int64_t row = 0;
  for (const LinearPart& part : spec.parts) {
    const std::string name = part.module + ".bias";
    // Where a bias is optional, a stacked neighbour without one has zeros.
    if (spec.bias == BiasRule::kRequired || tensors_.has(name)) {
      const TensorView& view = require(name, {part.total_rows()}, spec.owner);
      float* out = bias.as<float>() + row;
      to_float(view.type, view.bytes.data() + static_cast<std::size_t>(part.first) * element_bytes(view.type),
               static_cast<std::size_t>(part.rows), out);
      require_finite({out, static_cast<std::size_t>(part.rows)}, view, tensors_);
    }
    row += part.rows;
  }
  return bias;
}

void WeightLoader::require_stackable(const LinearSpec& spec) const {
  const TensorView* plain = nullptr;
  const TensorView* other = nullptr;
  for (const LinearPart& part : spec.parts) {
    const TensorView* view = tensors_.find(part.module + ".weight");
    if (view == nullptr) continue;
    if (view->packed) {
      throw Error(place(*view, tensors_) + ": is packed in another stack than this version reads; make the folder " +
                  "again with: drafthorse quantize");
    }
    (is_float(view->type) ? plain : other) = view;
  }
  if (plain == nullptr || other == nullptr) return;
  throw Error(place(*other, tensors_) + ": element type " + std::string(element_name(other->type)) +
              " cannot be stacked with \"" + plain->name + "\" of type " + std::string(element_name(plain->type)) +
              ": " + spec.owner);
}

PackedMatrix WeightLoader::borrowed(const LinearSpec& spec, const PackedStack& stack) {
  const std::string where = stack.file->path() + ": " + tensor_text(stack.parts.front().name);
  if (stack.cols != spec.cols) {
    throw Error(where + ": width " + std::to_string(stack.cols) + " where the config asks for " +
                std::to_string(spec.cols) + ": " + spec.owner);
  }
  if (options_.weights.value_or(stack.type) != stack.type) {
    throw Error("--weights " + std::string(weight_name(*options_.weights)) + ": " + where + " is packed as " +
                std::string(weight_name(stack.type)) + "; leave --weights out, or load the folder it was made from");
  }
  for (const StackPart& part : stack.parts) used_.insert(part.name);
  PackedMatrix matrix{.type = stack.type,
                      .rows = spec.rows(),
                      .cols = spec.cols,
                      .data = {},
                      .borrowed = stack.bytes,
                      .bias = stacked_bias(spec)};
  stack.file->will_need(stack.bytes);
  report(matrix);
  return matrix;
}

void WeightLoader::report(const PackedMatrix& matrix) {
  packed_ += matrix.data.size() + matrix.borrowed.size() + matrix.bias.size();
  if (options_.progress) options_.progress(packed_, total_);
}

PackedMatrix WeightLoader::linear(const LinearSpec& spec) {
  if (const PackedStack* stack = tensors_.find_stack(spec.stack_parts())) return borrowed(spec, *stack);
  require_stackable(spec);
  std::vector<StoredMatrix> parts;
  std::vector<const TensorView*> views;
  std::string name;
  for (const LinearPart& part : spec.parts) {
    const TensorView& view = require(part.module + ".weight", {part.total_rows(), spec.cols}, spec.owner);
    const std::size_t row_bytes = static_cast<std::size_t>(spec.cols) * element_bytes(view.type);
    views.push_back(&view);
    parts.push_back({view.type, part.rows, spec.cols,
                     view.bytes.subspan(static_cast<std::size_t>(part.first) * row_bytes,
                                        static_cast<std::size_t>(part.rows) * row_bytes)});
    name += (name.empty() ? "" : " | ") + view.name;
  }
  name = tensors_.path() + ": " + name;
  PackedMatrix matrix = packed_matrix(held_type(spec, tensors_, options_), spec.rows(), spec.cols);
  matrix.bias = stacked_bias(spec);
  exec_.pool.parallel_for(matrix.tiles(),
                          [&](std::int64_t tile, int) { pack_tiles(parts, name.c_str(), tile, tile + 1, matrix); });
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (views[i]->file != nullptr) views[i]->file->release(parts[i].bytes);
  }
  report(matrix);
  return matrix;
}

AlignedBuffer WeightLoader::vector(const std::string& name, std::int64_t size, const std::string& owner) {
  const TensorView& view = require(name, {size}, owner);
  AlignedBuffer values(static_cast<std::size_t>(size) * sizeof(float));
  to_float(view.type, view.bytes.data(), static_cast<std::size_t>(size), values.as<float>());
  require_finite({values.as<float>(), static_cast<std::size_t>(size)}, view, tensors_);
  return values;
}

StoredMatrix WeightLoader::stored(const std::string& name, std::int64_t rows, std::int64_t cols,
                                  const std::string& owner) {
  const TensorView& view = require(name, {rows, cols}, owner);
  return {view.type, rows, cols, view.bytes};
}

}  // namespace drafthorse
