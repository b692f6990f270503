#include "tokenizer/tokenizer_parts.h"

#include <set>

#include "base/check.h"
#include "base/error.h"

namespace drafthorse {
namespace {

const Json& member(const Json& object, const std::string& key) {
  static const Json kNull;
  const auto it = object.find(key);
  return it == object.end() ? kNull : *it;
}

void check_top_keys(const Json& rest, const std::string& source) {
  static const std::set<std::string> kKeys = {"version",        "truncation", "padding",
                                              "added_tokens",   "normalizer", "pre_tokenizer",
                                              "post_processor", "decoder",    "model"};
  const JsonObject object(rest, source);
  for (const auto& [key, value] : rest.items()) {
    if (!kKeys.contains(key)) object.fail(key, "unknown key of a tokenizer.json");
  }
  if (const auto version = object.string("version"); version && *version != "1.0") {
    object.fail("version", "only 1.0 is supported");
  }
}

}  // namespace

Tokenizer::Parts::Parts(TokenizerFile file, TokenizerConfig tokenizer_config, const std::string& source)
    : vocab(std::move(file.vocab)),
      tokens(vocab),
      config(std::move(tokenizer_config)),
      normalizer(member(file.rest, "normalizer"), source),
      pre_tokenizer(member(file.rest, "pre_tokenizer"), source),
      decoder(member(file.rest, "decoder"), source) {
  check_top_keys(file.rest, source);
  add_tokens(read_added_tokens(member(file.rest, "added_tokens"), source), source);
  read_model(file, source);
  post_processor = PostProcessor::read(member(file.rest, "post_processor"), tokens, source);
  read_config();
  decode_all();
}

void Tokenizer::Parts::add_tokens(const std::vector<AddedToken>& added, const std::string& source) {
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
  std::set<std::string> normalized_contents;
  for (const AddedToken& token : added) {
    const auto fail = [&](const std::string& what) {
      throw Error(source + ": added_tokens: " + brief(Json(token.content)) + " with id " + std::to_string(token.id) +
                  ": " + what);
    };
    // The same token may be in both lists; anything else that shares an id or a content is a contradiction.
    const bool same = vocab.has(token.id) && vocab.content(token.id) == token.content;
    if (!same && vocab.has(token.id)) {
      fail("model.vocab gives this id to " + brief(Json(std::string(vocab.content(token.id)))));
    }
    if (!same && tokens.add(token.content, token.id) != TokenTable::Added::kYes) {
      fail("model.vocab gives this content the id " + std::to_string(vocab.find(token.content).value_or(-1)));
    }
    if (token.special) {
      special.resize(std::max(special.size(), static_cast<std::size_t>(token.id) + 1));
      special[static_cast<std::size_t>(token.id)] = true;
    }
    if (!token.normalized) {
      raw.push_back(token);
      continue;
    }
    normalized.push_back(token);
    normalized.back().content = normalizer.normalize(token.content);
    if (normalized.back().content.empty()) fail("its normalised content is empty");
    if (!normalized_contents.insert(normalized.back().content).second)
      fail("another one has the same normalised content");
  }
  raw_tokens = AddedTokenMatcher(std::move(raw));
  normalized_tokens = AddedTokenMatcher(std::move(normalized));
}

void Tokenizer::Parts::read_model(const TokenizerFile& file, const std::string& source) {
  const JsonObject model(member(file.rest, "model"), source, "model.");
  static const std::set<std::string> kKeys = {"type",
                                              "unk_token",
                                              "byte_fallback",
                                              "fuse_unk",
                                              "ignore_merges",
                                              "dropout",
                                              "continuing_subword_prefix",
                                              "end_of_word_suffix",
                                              "vocab",
                                              "merges"};
  for (const auto& [key, value] : model.json().items()) {
    if (!kKeys.contains(key)) model.fail(key, "unknown option of the model");
  }
  if (const auto type = model.string("type"); type && *type != "BPE") model.fail("type", "only BPE is supported");
  if (model.number("dropout").value_or(0) != 0) model.fail("dropout", "must be null or 0: encoding is deterministic");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.string(key).value_or("").empty()) model.fail(key, "must be null or empty");
  }

  BpeOptions options;
  options.byte_level = pre_tokenizer.byte_level();
  options.ignore_merges = model.boolean("ignore_merges").value_or(false);
  options.byte_fallback = model.boolean("byte_fallback").value_or(false);
  options.fuse_unk = model.boolean("fuse_unk").value_or(false);
  if (const auto unk = model.string("unk_token")) {
    options.unk = vocab.find(*unk);
    if (!options.unk) model.fail("unk_token", "not in model.vocab");
  }
  if (options.byte_level && options.byte_fallback)
    model.fail("byte_fallback", "must be false with a ByteLevel pre_tokenizer");

  std::vector<std::int32_t> control;
  for (std::size_t id = 0; id < special.size(); ++id) {
    if (special[id] && vocab.has(static_cast<std::int32_t>(id))) control.push_back(static_cast<std::int32_t>(id));
  }
  bpe = std::make_unique<Bpe>(vocab, file.merges, options, std::move(control), source);
}

void Tokenizer::Parts::read_config() {
  const auto id_of = [&](const char* key, const std::optional<std::string>& content) -> std::optional<std::int32_t> {
    if (!content) return std::nullopt;
    const auto id = tokens.find(*content);
    if (!id)
      throw Error(config.source + ": " + key + " = " + brief(Json(*content)) + ": not a token of tokenizer.json");
    return id;
  };
  bos_id = id_of("bos_token", config.bos_token);
  eos_id = id_of("eos_token", config.eos_token);
  // Padding is for training: a pad token that was never added is no reason to refuse a model.
  if (config.pad_token) pad_id = tokens.find(*config.pad_token);

  // A template, where there is one, is what adds BOS and EOS; otherwise the two switches do.
  if (post_processor.has_template) return;
  const auto add = [&](const char* key, bool wanted, std::optional<std::int32_t> id, std::vector<std::int32_t>& side) {
    if (!wanted) return;
    if (!id) throw Error(config.source + ": add_" + key + " = true: there is no " + key);
    side.push_back(*id);
  };
  add("bos_token", config.add_bos_token.value_or(false), bos_id, post_processor.prefix);
  add("eos_token", config.add_eos_token.value_or(false), eos_id, post_processor.suffix);
}

void Tokenizer::Parts::decode_all() {
  decoded_offsets.reserve(static_cast<std::size_t>(tokens.id_end()) + 1);
  for (std::int32_t id = 0; id < tokens.id_end(); ++id) {
    decoded_offsets.push_back(static_cast<std::uint32_t>(decoded.size()));
    if (tokens.has(id)) decoded += decoder.decode(tokens.content(id));
    DRAFTHORSE_CHECK(decoded.size() < UINT32_MAX);
  }
  decoded_offsets.push_back(static_cast<std::uint32_t>(decoded.size()));
}

}  // namespace drafthorse
