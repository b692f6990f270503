#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/tensor_source.h"
#include "model/layers/linear_spec.h"
#include "model/registry.h"
#include "ops/exec_context.h"
#include "quant/packed_matrix.h"
#include "tensor/aligned_buffer.h"

namespace drafthorse {

/// The type a layer is held in: the one asked for, else the file's, and float32 when stacked parts differ (exact for
/// all of them).
WeightType held_type(const LinearSpec& spec, const TensorSource& tensors, const ModelOptions& options);
/// Bytes a layer takes in memory, bias included. Tensors that are missing count as float32.
std::uint64_t held_bytes(const LinearSpec& spec, const TensorSource& tensors, const ModelOptions& options);

/// Reads a model's tensors, packs them on all threads, and remembers which names were used.
class WeightLoader {
 public:
  /// `total`: what progress reports as bytes in all.
  WeightLoader(const TensorSource& tensors, const ModelOptions& options, std::uint64_t total, ExecContext& exec)
      : tensors_(tensors), options_(options), total_(total), exec_(exec) {}

  /// Throws Error naming file, tensor and `spec.owner` when a part is missing, has a wrong shape, or cannot be packed.
  /// What the file holds in kernel order is borrowed from it.
  PackedMatrix linear(const LinearSpec& spec);
  /// A vector of `size` values as float32 ("<module>.weight" of a norm). Throws Error as above, also for values that
  /// are not finite.
  AlignedBuffer vector(const std::string& name, std::int64_t size, const std::string& owner);
  /// A [rows, cols] matrix that stays in the file.
  StoredMatrix stored(const std::string& name, std::int64_t rows, std::int64_t cols, const std::string& owner);

  const TensorSource& tensors() const { return tensors_; }
  /// Names asked for so far; add those that may be there and are passed over.
  std::set<std::string>& used() { return used_; }

 private:
  const TensorView& require(const std::string& name, const std::vector<std::int64_t>& shape, const std::string& owner);
  /// Parts of one layer are all of a float type, or all of another.
  void require_stackable(const LinearSpec& spec) const;
  AlignedBuffer stacked_bias(const LinearSpec& spec);
  PackedMatrix borrowed(const LinearSpec& spec, const PackedStack& stack);
  void report(const PackedMatrix& matrix);

  const TensorSource& tensors_;
  const ModelOptions& options_;
  std::uint64_t total_;
  std::uint64_t packed_ = 0;
  ExecContext& exec_;
  std::set<std::string> used_;
};

}  // namespace drafthorse
