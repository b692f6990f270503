#include "support/naive_draft.h"

#include <cmath>
#include <cstdlib>

namespace drafthorse {

std::vector<double> NaiveDraft::norm(const std::vector<double>& x, const std::string& name) const {
  const std::vector<double>& weight = tensors.at(name);
  double squares = 0.0;
  for (const double v : x) squares += v * v;
  const double root = std::sqrt(squares / static_cast<double>(x.size()) + eps);
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] / root * weight[i];
  return out;
}

std::vector<double> NaiveDraft::linear(const std::vector<double>& x, const std::string& module) const {
  const std::vector<double>& weight = tensors.at(module + ".weight");
  std::vector<double> out(weight.size() / x.size());
  for (std::size_t n = 0; n < out.size(); ++n) {
    for (std::size_t k = 0; k < x.size(); ++k) out[n] += weight[n * x.size() + k] * x[k];
    if (has(module + ".bias")) out[n] += tensors.at(module + ".bias")[n];
  }
  return out;
}

/// Norms each head, then turns its pairs by slot * theta^(-2i / head_dim).
std::vector<double> NaiveDraft::heads_of(const std::vector<double>& x, int count, const std::string& norm_name,
                                         int slot) const {
  std::vector<double> out;
  for (int h = 0; h < count; ++h) {
    std::vector<double> head = norm({x.begin() + h * head_dim, x.begin() + (h + 1) * head_dim}, norm_name);
    for (int i = 0; i < head_dim / 2; ++i) {
      const double angle = slot * std::pow(theta, -2.0 * i / head_dim);
      double& first = head[static_cast<std::size_t>(interleaved ? 2 * i : i)];
      double& second = head[static_cast<std::size_t>(interleaved ? 2 * i + 1 : i + head_dim / 2)];
      const double a = first;
      const double b = second;
      first = a * std::cos(angle) - b * std::sin(angle);
      second = a * std::sin(angle) + b * std::cos(angle);
    }
    out.insert(out.end(), head.begin(), head.end());
  }
  return out;
}

bool NaiveDraft::sees(int layer, int query_slot, int key_slot) const {
  if (causal[static_cast<std::size_t>(layer)] && key_slot > query_slot) return false;
  const int window = windows[static_cast<std::size_t>(layer)];
  if (window == 0) return true;
  const int distance = std::abs(query_slot - key_slot);
  return window_inclusive ? distance <= window : distance < window;
}

NaiveRows NaiveDraft::block(const NaiveRows& features, const NaiveRows& embeddings) const {
  const int context = static_cast<int>(features.size());
  const int slots = context + static_cast<int>(embeddings.size());
  NaiveRows context_rows;
  for (const std::vector<double>& feature : features) {
    std::vector<double> fused = feature;
    const std::size_t width = static_cast<std::size_t>(hidden);
    for (std::size_t t = 0; has("aux_hidden_norms." + std::to_string(t) + ".weight"); ++t) {
      const auto first = feature.begin() + static_cast<std::ptrdiff_t>(t * width);
      const std::vector<double> tap =
          norm({first, first + hidden}, "aux_hidden_norms." + std::to_string(t) + ".weight");
      for (std::size_t i = 0; i < width; ++i) fused[t * width + i] = tap[i];
    }
    context_rows.push_back(norm(linear(fused, "fc"), "hidden_norm.weight"));
  }
  NaiveRows stream = embeddings;
  for (std::vector<double>& row : stream) {
    for (double& v : row) v *= embedding_scale;
  }

  for (int layer = 0; layer < layers; ++layer) {
    const std::string at = "layers." + std::to_string(layer) + ".";
    const std::string attention = at + "self_attn.";
    NaiveRows inputs;
    for (const std::vector<double>& row : context_rows)
      inputs.push_back(laguna ? norm(row, at + "input_layernorm.weight") : row);
    for (const std::vector<double>& row : stream) inputs.push_back(norm(row, at + "input_layernorm.weight"));
    NaiveRows keys;
    NaiveRows values;
    for (int slot = 0; slot < slots; ++slot) {
      const std::vector<double>& x = inputs[static_cast<std::size_t>(slot)];
      keys.push_back(heads_of(linear(x, attention + "k_proj"), kv_heads, attention + "k_norm.weight", slot));
      values.push_back(linear(x, attention + "v_proj"));
    }
    for (int slot = context; slot < slots; ++slot) {
      std::vector<double>& row = stream[static_cast<std::size_t>(slot - context)];
      const std::vector<double>& x = inputs[static_cast<std::size_t>(slot)];
      const std::vector<double> q = heads_of(linear(x, attention + "q_proj"), heads, attention + "q_norm.weight", slot);
      std::vector<double> mixed(q.size());
      for (int h = 0; h < heads; ++h) {
        const int kv_first = h / (heads / kv_heads) * head_dim;
        std::vector<double> weights(static_cast<std::size_t>(slots), 0.0);
        double total = 0.0;
        for (int key = 0; key < slots; ++key) {
          if (!sees(layer, slot, key)) continue;
          double score = 0.0;
          for (int d = 0; d < head_dim; ++d) {
            score += q[static_cast<std::size_t>(h * head_dim + d)] *
                     keys[static_cast<std::size_t>(key)][static_cast<std::size_t>(kv_first + d)];
          }
          weights[static_cast<std::size_t>(key)] = std::exp(score / std::sqrt(static_cast<double>(head_dim)));
          total += weights[static_cast<std::size_t>(key)];
        }
        for (int key = 0; key < slots; ++key) {
          for (int d = 0; d < head_dim; ++d) {
            mixed[static_cast<std::size_t>(h * head_dim + d)] +=
                weights[static_cast<std::size_t>(key)] / total *
                values[static_cast<std::size_t>(key)][static_cast<std::size_t>(kv_first + d)];
          }
        }
      }
      if (has(attention + "g_proj.weight")) {
        const std::vector<double> gate = linear(x, attention + "g_proj");
        for (std::size_t i = 0; i < mixed.size(); ++i)
          mixed[i] *= std::log1p(std::exp(gate[i / static_cast<std::size_t>(head_dim)]));
      }
      const std::vector<double> delta = linear(mixed, attention + "o_proj");
      for (std::size_t i = 0; i < row.size(); ++i) row[i] += delta[i];
    }
    for (std::vector<double>& row : stream) {
      const std::vector<double> x = norm(row, at + "post_attention_layernorm.weight");
      std::vector<double> inner = linear(x, at + "mlp.gate_proj");
      const std::vector<double> up = linear(x, at + "mlp.up_proj");
      for (std::size_t i = 0; i < inner.size(); ++i) inner[i] = inner[i] / (1.0 + std::exp(-inner[i])) * up[i];
      const std::vector<double> delta = linear(inner, at + "mlp.down_proj");
      for (std::size_t i = 0; i < row.size(); ++i) row[i] += delta[i];
    }
  }
  for (std::vector<double>& row : stream) row = norm(row, "norm.weight");
  return stream;
}

}  // namespace drafthorse
