#include "checkpoint/draft_names.h"

#include <array>
#include <string_view>

#include "base/error.h"

namespace drafthorse {
namespace {

constexpr std::array<std::string_view, 3> kPrefixes = {"", "model.", "draft."};

struct Layout {
  std::string_view fc;
  std::string_view hidden_norm;
};
constexpr std::array<Layout, 2> kLayouts = {{{"fc", "hidden_norm"}, {"encoder.fc", "encoder.output_norm_enc"}}};

/// What a draft borrows from its target, or recomputes.
bool is_borrowed(std::string_view name) {
  for (const std::string_view prefix : kPrefixes) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = name.substr(prefix.size());
    if (rest == "embed_tokens.weight" || rest == "lm_head.weight") return true;
  }
  return name.ends_with("rotary_emb.inv_freq");
}

void require_part(const TensorSource& source, const std::string& module) {
  if (!source.has(module + ".weight"))
    throw Error(source.path() + ": " + tensor_text(module + ".weight") + " is missing");
}

}  // namespace

DraftNames find_draft_names(const TensorSource& source) {
  for (const std::string_view prefix : kPrefixes) {
    for (const std::string_view map : {"d2t", "t2d"}) {
      const std::string name = std::string(prefix) + std::string(map);
      if (!source.has(name)) continue;
      throw Error(source.path() + ": " + tensor_text(name) +
                  ": drafts with a vocabulary of their own are not supported");
    }
  }
  for (const std::string_view prefix : kPrefixes) {
    for (const Layout& layout : kLayouts) {
      const std::string start(prefix);
      const DraftNames names{start, start + std::string(layout.fc), start + std::string(layout.hidden_norm)};
      if (!source.has(names.fc + ".weight")) continue;
      require_part(source, names.hidden_norm);
      require_part(source, names.final_norm());
      return names;
    }
  }
  throw Error(source.path() +
              ": tensor \"fc.weight\" (or \"encoder.fc.weight\") is missing; these are not the weights of a draft");
}

void require_all_draft_tensors_used(const TensorSource& source, const std::set<std::string>& used) {
  std::size_t unused = 0;
  std::string first;
  for (const std::string& name : source.names()) {
    if (used.contains(name) || is_borrowed(name)) continue;
    if (++unused == 1) first = name;
  }
  if (unused == 0) return;
  throw Error(source.path() + ": " + tensor_text(first) + " is not part of this draft architecture (" +
              std::to_string(unused) + " such tensors in all); the file and its config do not belong together");
}

}  // namespace drafthorse
