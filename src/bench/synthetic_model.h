#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/registry.h"
#include "tensor/aligned_buffer.h"

namespace drafthorse {

/// The configuration of a published Qwen3 size: "0.6b" or "4b". Throws Error naming both for anything else.
TargetConfig synthetic_config(std::string_view shape);

/// The tensors of a Qwen3 target with random bf16 weights, so that speed can be measured without a file. All tensors
/// show the same block of random values over and over, which makes them nearly free; packed, they take the memory of a
/// real model.
class SyntheticTensors : public TensorSource {
 public:
  explicit SyntheticTensors(const TargetConfig& config);

  const TensorView* find(std::string_view name) const override;
  std::vector<std::string> names() const override;
  const std::string& path() const override { return path_; }

 private:
  void add(const std::string& name, std::vector<std::int64_t> shape);

  std::string path_;
  AlignedBuffer values_;  // as many as the largest tensor has
  AlignedBuffer ones_;    // for norms
  std::map<std::string, TensorView, std::less<>> views_;
};

}  // namespace drafthorse
