#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/layers/weight_loader.h"
#include "ops/exec_context.h"
#include "quant/packed_matrix.h"
#include "tensor/rows.h"

namespace drafthorse {

/// down(silu(gate x) * up x), gate and up stacked into one matrix.
class SwigluMlp {
 public:
  /// Layers under "<module>.gate_proj", "up_proj", "down_proj".
  static std::vector<LinearSpec> specs(const std::string& module, std::int64_t hidden, std::int64_t intermediate,
                                       BiasRule bias, const std::string& owner);
  /// `specs` as made by specs().
  SwigluMlp(WeightLoader& loader, const std::vector<LinearSpec>& specs);

  /// out = the sublayer of x. gate_up [rows, 2 * intermediate] and `packing` are scratch.
  void forward(ConstRows x, Rows gate_up, std::byte* packing, Rows out, const ExecContext& exec) const;

  std::int64_t intermediate() const { return down_.cols; }

 private:
  PackedMatrix gate_up_;
  PackedMatrix down_;
};

}  // namespace drafthorse
