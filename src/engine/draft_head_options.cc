#include "engine/draft_head_options.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "base/mapped_file.h"

namespace drafthorse {
namespace {

constexpr const char* kFile = "draft_vocab.json";

/// A whole number from 1; nothing for any other text.
std::optional<std::int64_t> count_of(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1) return std::nullopt;
  return count;
}

std::vector<std::int32_t> read_vocab(const std::string& path, std::int64_t vocab_width) {
  const Json json = read_json_file(path);
  const auto refuse = [&](const std::string& what) {
    return Error(path + ": " + what + "; expected a list of token ids from 0 to " + std::to_string(vocab_width - 1) +
                 " in strictly ascending order");
  };
  if (!json.is_array() || json.empty()) throw refuse("is not a list with an entry");
  std::vector<std::int32_t> ids;
  ids.reserve(json.size());
  for (const Json& entry : json) {
    const std::string where = "entry " + std::to_string(ids.size());
    if (!entry.is_number_integer()) throw refuse(where + " is not a whole number");
    if (entry < 0 || entry >= vocab_width) throw refuse(where + " = " + entry.dump() + " is outside the vocabulary");
    const auto id = entry.get<std::int32_t>();
    if (!ids.empty() && id <= ids.back()) throw refuse(where + " = " + entry.dump() + " does not ascend");
    ids.push_back(id);
  }
  return ids;
}

std::vector<std::int32_t> common_ids(const TargetFiles& target, std::int64_t count) {
  if (!target.tokenizer) {
    throw Error("--draft-vocab " + std::to_string(count) + ": " + target.path() +
                " has no tokenizer.json to rank tokens by; use file or all");
  }
  std::vector<std::int32_t> ids = target.tokenizer->common_ids(count);
  std::erase_if(ids, [&](std::int32_t id) { return id >= target.config.vocab_size; });
  return ids;
}

}  // namespace

DraftHeadOptions DraftHeadOptions::parse(std::string_view vocab, std::string_view head) {
  DraftHeadOptions options;
  if (!vocab.empty() && vocab != "file" && vocab != "all" && !count_of(vocab)) {
    throw Error("--draft-vocab = " + std::string(vocab) + ": it must be file, all, or a number of tokens from 1");
  }
  options.vocab = vocab;
  if (head == "q4") {
    options.type = WeightType::kQ4_0;
  } else if (!head.empty() && head != "target") {
    options.type = weight_type(head);
    if (!options.type) {
      throw Error("--draft-head = " + std::string(head) + ": unknown; it must be one of target, q4, " + weight_names());
    }
  }
  return options;
}

std::string DraftHeadOptions::label() const {
  std::string text;
  if (!vocab.empty()) text += ", draft vocabulary " + vocab;
  if (type) text += ", draft head " + std::string(weight_name(*type));
  return text;
}

DraftHeadChoice draft_head_choice(const DraftHeadOptions& options, const TargetFiles& target, const DraftFiles& draft) {
  DraftHeadChoice choice{.type = options.type};
  if (const auto count = count_of(options.vocab)) {
    choice.vocab = common_ids(target, *count);
  } else if (options.vocab != "all") {
    const std::string path = (std::filesystem::path(draft.path) / kFile).string();
    if (is_listed(path)) {
      choice.vocab = read_vocab(path, target.config.vocab_size);
    } else if (options.vocab == "file") {
      throw Error("--draft-vocab file: " + path + " does not exist; use a number or all");
    }
  }
  if (std::ssize(choice.vocab) == target.config.vocab_size) choice.vocab.clear();
  return choice;
}

}  // namespace drafthorse
