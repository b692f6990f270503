#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/tokenizer.h"

namespace drafthorse {

/// tokenizer.json documents small enough to reason about, for tests. Change any field before loading.
using MergeParts = std::vector<std::pair<std::string, std::string>>;

inline Json added_token(std::int32_t id, const std::string& content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

inline Json merges_json(const MergeParts& merges) {
  Json list = Json::array();
  for (const auto& [left, right] : merges) list.push_back(Json::array({left, right}));
  return list;
}

/// Byte-level: ids 0..255 are the bytes, then one token per merge (in the byte alphabet: a space is U+0120), in order.
inline Json byte_level_json(const MergeParts& merges = {}) {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte) vocab[to_byte_alphabet(std::string(1, static_cast<char>(byte)))] = byte;
  for (const auto& [left, right] : merges) vocab[left + right] = vocab.size();
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  return {{"version", "1.0"},
          {"added_tokens", Json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges_json(merges)}}}};
}

/// SentencePiece style, as Llama 2: <unk> <s> </s>, 256 bytes from id 3, then `characters` (from id 259; "\u2581" is a
/// space), then one token per merge.
inline Json sentencepiece_json(const std::vector<std::string>& characters, const MergeParts& merges) {
  Json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int byte = 0; byte < 256; ++byte) vocab[fallback_token_of_byte(static_cast<std::uint8_t>(byte))] = 3 + byte;
  for (const std::string& character : characters) vocab[character] = vocab.size();
  for (const auto& [left, right] : merges) vocab[left + right] = vocab.size();
  const std::string block = "\u2581";
  return {{"version", "1.0"},
          {"added_tokens", Json::array({added_token(1, "<s>"), added_token(2, "</s>")})},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers", Json::array({{{"type", "Prepend"}, {"prepend", block}},
                                         {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", block}}})}}},
          {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},
          {"decoder",
           {{"type", "Sequence"},
            {"decoders", Json::array({{{"type", "Replace"}, {"pattern", {{"String", block}}}, {"content", " "}},
                                      {{"type", "ByteFallback"}},
                                      {{"type", "Fuse"}},
                                      {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}})}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"byte_fallback", true},
            {"fuse_unk", true},
            {"vocab", vocab},
            {"merges", merges_json(merges)}}}};
}

inline std::unique_ptr<Tokenizer> tokenizer_of(const Json& document, const Json& config = Json::object()) {
  return Tokenizer::from_json(document.dump(), "tokenizer.json", config.dump());
}

}  // namespace drafthorse
