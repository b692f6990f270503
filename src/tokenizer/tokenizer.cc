#include "tokenizer/tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "base/mapped_file.h"
#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/utf8.h"

namespace drafthorse {
namespace {

constexpr std::size_t kTextLimit = std::size_t{256} << 20;

void check_length(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return;
  throw Error("text: " + std::to_string(text.size()) + " bytes: more than the limit of " + std::to_string(limit));
}

/// Buffers of one encode() call.
struct EncodeScratch {
  explicit EncodeScratch(const PreTokenizer& pre_tokenizer) : split(pre_tokenizer) {}
  PreTokenizer::Scratch split;
  std::vector<PreTokenizer::Piece> pieces;
  Bpe::Scratch bpe;
};

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::load(const std::string& folder) {
  const std::string path = folder + "/tokenizer.json";
  if (!is_listed(path)) {
    const bool sentencepiece = is_listed(folder + "/tokenizer.model");
    throw Error(path + ": not found" +
                (sentencepiece ? "; tokenizer.model alone is not supported: convert it to a tokenizer.json" : ""));
  }
  const std::string config_path = folder + "/tokenizer_config.json";
  const Json config_json = is_listed(config_path) ? read_json_file(config_path) : Json::object();
  TokenizerConfig config = TokenizerConfig::read(config_json, config_path);
  config.read_template_files(folder);
  return make(read_text_file(path), path, std::move(config));
}

std::unique_ptr<Tokenizer> Tokenizer::from_json(std::string_view text, const std::string& source,
                                                std::string_view config) {
  return make(text, source, TokenizerConfig::read(parse_json(config, source), source));
}

std::unique_ptr<Tokenizer> Tokenizer::make(std::string_view text, const std::string& source, TokenizerConfig config) {
  auto parts = std::make_unique<const Parts>(TokenizerFile::read(text, source), std::move(config), source);
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(parts)));
}

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  const Parts& parts = *parts_;
  check_length(text, kTextLimit);
  if (const auto bad = find_invalid_utf8(text); bad != std::string_view::npos) {
    throw Error("text: not valid UTF-8 at byte " + std::to_string(bad));
  }

  std::vector<std::int32_t> ids;
  ids.reserve(text.size() / 4 + 8);
  EncodeScratch scratch(parts.pre_tokenizer);
  const auto encode_plain = [&](std::string_view plain) {
    parts.pre_tokenizer.split(plain, scratch.split, scratch.pieces);
    for (const PreTokenizer::Piece& piece : scratch.pieces) {
      parts.bpe->encode(plain.substr(piece.begin, piece.end - piece.begin), options.match_added_tokens, scratch.bpe,
                        ids);
    }
  };
  std::vector<AddedTokenMatcher::Part> raw;
  std::vector<AddedTokenMatcher::Part> normalized;
  if (options.match_added_tokens) {
    parts.raw_tokens.split(text, raw);
  } else if (!text.empty()) {
    raw.push_back({text, -1});
  }
  for (const AddedTokenMatcher::Part& part : raw) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      continue;
    }
    std::string storage;
    std::string_view plain = part.text;
    if (!parts.normalizer.is_identity()) plain = storage = parts.normalizer.normalize(part.text);
    check_length(plain, PreTokenizer::kTextLimit);
    if (!options.match_added_tokens) {
      encode_plain(plain);
      continue;
    }
    normalized.clear();
    parts.normalized_tokens.split(plain, normalized);
    for (const AddedTokenMatcher::Part& inner : normalized) {
      inner.id >= 0 ? ids.push_back(inner.id) : encode_plain(inner.text);
    }
  }

  if (options.add_special) {
    const auto& prefix = parts.post_processor.prefix;
    const auto& suffix = parts.post_processor.suffix;
    const bool begins = ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
    if (!begins) ids.insert(ids.begin(), prefix.begin(), prefix.end());
    ids.insert(ids.end(), suffix.begin(), suffix.end());
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string text;
  LeadingStrip strip = leading_strip();
  for (const std::int32_t id : ids) {
    if (skip_special && is_special(id)) continue;
    text += strip.apply(token_bytes(id));
  }
  return text;
}

std::string_view Tokenizer::token_bytes(std::int32_t id) const {
  if (id < 0 || id >= vocab_size()) return {};
  const auto& offsets = parts_->decoded_offsets;
  const auto i = static_cast<std::size_t>(id);
  return std::string_view(parts_->decoded).substr(offsets[i], offsets[i + 1] - offsets[i]);
}

LeadingStrip Tokenizer::leading_strip() const { return LeadingStrip(parts_->decoder); }

std::int32_t Tokenizer::vocab_size() const { return parts_->tokens.id_end(); }

bool Tokenizer::has_token(std::int32_t id) const { return parts_->tokens.has(id); }

std::string_view Tokenizer::token_content(std::int32_t id) const {
  return has_token(id) ? parts_->tokens.content(id) : std::string_view();
}

std::optional<std::int32_t> Tokenizer::find_token(std::string_view content) const {
  return parts_->tokens.find(content);
}

std::vector<std::int32_t> Tokenizer::common_ids(std::int64_t count) const {
  std::vector<std::int32_t> ids = parts_->bpe->by_merge_rank();
  ids.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, std::ssize(ids))));
  for (std::int32_t id = 0; id < vocab_size(); ++id) {
    if (has_token(id) && (is_special(id) || !parts_->vocab.has(id))) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

bool Tokenizer::is_special(std::int32_t id) const {
  return id >= 0 && static_cast<std::size_t>(id) < parts_->special.size() &&
         parts_->special[static_cast<std::size_t>(id)];
}

std::optional<std::int32_t> Tokenizer::bos_id() const { return parts_->bos_id; }
std::optional<std::int32_t> Tokenizer::eos_id() const { return parts_->eos_id; }
std::optional<std::int32_t> Tokenizer::pad_id() const { return parts_->pad_id; }

std::vector<std::int32_t> Tokenizer::stop_ids() const {
  return parts_->eos_id ? std::vector<std::int32_t>{*parts_->eos_id} : std::vector<std::int32_t>();
}

bool Tokenizer::adds_bos() const {
  const auto& prefix = parts_->post_processor.prefix;
  return parts_->bos_id && std::find(prefix.begin(), prefix.end(), *parts_->bos_id) != prefix.end();
}

const TokenizerConfig& Tokenizer::config() const { return parts_->config; }

const ChatTemplate* Tokenizer::chat_template(std::string_view name) const {
  for (const ChatTemplate& entry : parts_->config.chat_templates) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace drafthorse
