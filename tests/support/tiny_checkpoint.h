#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "tensor/element_type.h"

namespace drafthorse {

/// A tensor of a checkpoint in the making.
struct TinyTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

/// A small checkpoint as a test edits it: a config and named tensors. write() makes a Hugging Face folder of it.
struct TinyCheckpoint {
  Json config;
  std::map<std::string, TinyTensor> tensors;

  /// Adds (or replaces) a tensor of random values: `centre` + `spread` * uniform in [-1, 1).
  void add(const std::string& name, std::vector<std::int64_t> shape, float centre, float spread,
           std::uint64_t seed = 0);
  /// Rows [begin, end) of a matrix, or values of a vector.
  TinyTensor slice(const std::string& name, std::int64_t begin, std::int64_t end) const;
  /// Stacks matrices (or vectors) into `name` and removes them: q, k, v become qkv.
  void fuse(const std::vector<std::string>& parts, const std::string& name);
  void rename(const std::string& from, const std::string& to);
  /// config.json and model.safetensors, all tensors as `type` (kF32, kF16 or kBF16), into the existing folder.
  void write(const std::string& folder, ElementType type = ElementType::kF32) const;
};

struct TinyTargetShape {
  bool qwen2 = false;  ///< Qwen2ForCausalLM (biases on q, k, v), else Qwen3ForCausalLM (q and k norms)
  int layers = 3;
  int hidden = 64;
  int heads = 4;
  int kv_heads = 2;
  int head_dim = 32;  ///< Qwen2: hidden / heads
  int intermediate = 96;
  int vocab = 320;
  int context = 1024;
  bool tied = true;
  std::vector<int> windows = {};  ///< per layer, 0 = full; empty: all full. All windows that are not 0 are equal
  std::uint64_t seed = 1;
};
/// Random weights of a size that keeps activations near 1 and logits varied.
TinyCheckpoint tiny_target(const TinyTargetShape& shape);

struct TinyDraftShape {
  std::string architecture = "DFlashDraftModel";
  int layers = 2;
  int hidden = 64;
  int heads = 4;
  int kv_heads = 2;
  int head_dim = 32;
  int intermediate = 96;
  int vocab = 320;
  int block_size = 8;
  int mask_token_id = 319;
  std::vector<int> taps = {0, 2};
  int target_layers = 3;
  std::vector<int> windows = {};  ///< as in TinyTargetShape
  std::uint64_t seed = 2;
};
/// A draft that fits a tiny target of the same hidden and vocab.
TinyCheckpoint tiny_draft(const TinyDraftShape& shape);

}  // namespace drafthorse
