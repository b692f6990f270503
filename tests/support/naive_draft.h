#pragma once

#include <map>
#include <string>
#include <vector>

namespace drafthorse {

using NaiveRows = std::vector<std::vector<double>>;

/// A block-diffusion draft in plain loops and double precision: no cache, no packing, every key looked at and judged by
/// its slot. A twin to test the product against; it shares no code with it.
struct NaiveDraft {
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  double eps = 1e-6;
  double theta = 10000.0;
  bool interleaved = false;       ///< rotary pairs (2i, 2i + 1)
  bool laguna = false;            ///< context rows pass through each layer's input norm
  std::vector<int> windows;       ///< per layer, 0 = full
  bool window_inclusive = false;  ///< distance <= window instead of < window
  std::vector<bool> causal;       ///< per layer
  double embedding_scale = 1.0;
  /// Row-major values by the names of the plain layout: "fc.weight", "layers.0.self_attn.q_proj.weight", "..bias", ..
  /// Optional parts (aux_hidden_norms, g_proj, biases) are there or not.
  std::map<std::string, std::vector<double>> tensors;

  /// Final-normed rows of a block whose token embeddings are `embeddings`, standing right after `features`' slots
  /// (which start at 0).
  NaiveRows block(const NaiveRows& features, const NaiveRows& embeddings) const;

 private:
  bool has(const std::string& name) const { return tensors.count(name) > 0; }
  std::vector<double> norm(const std::vector<double>& x, const std::string& name) const;
  std::vector<double> linear(const std::vector<double>& x, const std::string& module) const;
  std::vector<double> heads_of(const std::vector<double>& x, int count, const std::string& norm_name, int slot) const;
  bool sees(int layer, int query_slot, int key_slot) const;
};

}  // namespace drafthorse
