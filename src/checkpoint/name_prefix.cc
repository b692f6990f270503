#include "checkpoint/name_prefix.h"

#include <array>

#include "base/error.h"

namespace drafthorse {
namespace {

/// Containers that published files put around the text network, in the order they are tried.
constexpr std::array<std::string_view, 6> kTextPrefixes = {
    "model.", "language_model.model.", "model.language_model.", "model.language_model.model.", "language_model.", ""};
constexpr std::array<std::string_view, 3> kHeads = {"lm_head", "language_model.lm_head", "model.lm_head"};
constexpr std::array<std::string_view, 4> kVisionPrefixes = {"model.visual.", "visual.", "vision_tower.",
                                                             "multi_modal_projector."};

}  // namespace

NamePrefix find_name_prefix(const TensorSource& source) {
  std::string tried;
  for (const std::string_view text : kTextPrefixes) {
    NamePrefix prefix{std::string(text), ""};
    if (!source.has(prefix.embedding())) {
      tried += (tried.empty() ? "" : ", ") + prefix.embedding();
      continue;
    }
    for (const std::string_view head : kHeads) {
      if (!prefix.head.empty() || !source.has(std::string(head) + ".weight")) continue;
      prefix.head = head;
    }
    return prefix;
  }
  throw Error(source.path() + ": no embedding table; tried " + tried);
}

OutputHead output_head(const NamePrefix& prefix, std::optional<bool> tie, const TensorSource& source) {
  const std::string head = prefix.head.empty() ? "" : prefix.head + ".weight";
  if (tie.value_or(head.empty())) return {true, prefix.embedding(), head};
  if (head.empty()) {
    throw Error(source.path() +
                ": tensor \"lm_head.weight\" is missing although the config says tie_word_embeddings = false");
  }
  return {false, head, ""};
}

bool is_skippable(std::string_view name, bool with_mtp) {
  for (const std::string_view prefix : kVisionPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  if (name.ends_with(".rotary_emb.inv_freq")) return true;
  return !with_mtp && (name.starts_with("mtp.") || name.starts_with("model.mtp."));
}

std::vector<std::string> unused_tensors(const TensorSource& source, const std::set<std::string>& used, bool with_mtp) {
  std::vector<std::string> unused;
  for (const std::string& name : source.names()) {
    if (!used.contains(name) && !is_skippable(name, with_mtp)) unused.push_back(name);
  }
  return unused;
}

void require_all_used(const TensorSource& source, const std::set<std::string>& used, bool with_mtp) {
  const std::vector<std::string> unused = unused_tensors(source, used, with_mtp);
  if (unused.empty()) return;
  throw Error(source.path() + ": " + tensor_text(unused.front()) + " is not part of this architecture (" +
              std::to_string(unused.size()) + " such tensors in all); the file and its config do not belong together");
}

}  // namespace drafthorse
