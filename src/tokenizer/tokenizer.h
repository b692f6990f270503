#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/token_decoder.h"
#include "tokenizer/tokenizer_config.h"

namespace drafthorse {

struct EncodeOptions {
  /// Puts the ids of the file's template (BOS, usually) around the text, unless the text's own ids already begin with
  /// them.
  bool add_special = false;
  /// Looks for added tokens (`<|im_end|>`) in the text. Switch it off for text that must not be able to spell one: then
  /// no control token can come out, except the vocabulary's unk.
  bool match_added_tokens = true;
};

/// Text <-> token ids, as tokenizer.json says: byte-level BPE (Qwen, Llama 3) and SentencePiece-style BPE (Gemma, Llama
/// 2). Immutable after loading; any number of threads may use one Tokenizer.
class Tokenizer {
 public:
  /// Reads `folder`/tokenizer.json, and tokenizer_config.json and chat_template.* where present. Throws Error naming
  /// file, key and value for anything that is wrong or that we would not do exactly as written.
  static std::unique_ptr<Tokenizer> load(const std::string& folder);
  /// The same from the text of tokenizer.json, with the text of a tokenizer_config.json. `source` names both in
  /// messages.
  static std::unique_ptr<Tokenizer> from_json(std::string_view text, const std::string& source,
                                              std::string_view config = "{}");
  ~Tokenizer();

  /// Ids of `text`. Throws Error for text that is not valid UTF-8, is longer than 256 MiB, or on which a pattern of the
  /// file gives up. Time grows linearly with the text (n log n within one unbroken word); needs little stack.
  std::vector<std::int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  /// The bytes `ids` stand for, as they are: the result is not valid UTF-8 where tokens cut a character or spell stray
  /// bytes (replace_invalid_utf8() in utf8.h gives what StreamDecoder shows). Ids without a token stand for nothing.
  /// `skip_special` leaves out is_special() ids.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = false) const;
  /// The bytes of one token, before any leading strip; empty for an id without a token. Lives as long as the tokenizer.
  std::string_view token_bytes(std::int32_t id) const;
  /// The leading strip decode() makes, for those who join token_bytes() themselves.
  LeadingStrip leading_strip() const;

  /// Largest id + 1. A model may have more rows; it may not have fewer.
  std::int32_t vocab_size() const;
  bool has_token(std::int32_t id) const;
  /// A token's content as the file spells it ("\u0120the", "<|im_end|>"); empty for an id without a token.
  std::string_view token_content(std::int32_t id) const;
  /// The id of a token by the content the file spells.
  std::optional<std::int32_t> find_token(std::string_view content) const;
  /// The `count` tokens that merging makes first (Bpe::by_merge_rank: in a vocabulary learned by counting, the
  /// commonest), with every added or special token; ascending.
  std::vector<std::int32_t> common_ids(std::int64_t count) const;
  /// True for added tokens marked special.
  bool is_special(std::int32_t id) const;

  /// As tokenizer_config.json declares them.
  std::optional<std::int32_t> bos_id() const;
  std::optional<std::int32_t> eos_id() const;
  std::optional<std::int32_t> pad_id() const;
  /// The ids that end a text, as far as the tokenizer's files say (a model's own config may name more).
  std::vector<std::int32_t> stop_ids() const;

  /// True when add_special puts the BOS token before a text.
  bool adds_bos() const;
  /// bos_token and the like as text, for chat templates; and the templates: chat_template.jinja before
  /// chat_template.json before tokenizer_config.json. Empty when there is none.
  const TokenizerConfig& config() const;
  /// The template of that name, or nullptr.
  const ChatTemplate* chat_template(std::string_view name = "default") const;

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<const Parts> parts);
  static std::unique_ptr<Tokenizer> make(std::string_view text, const std::string& source, TokenizerConfig config);

  std::unique_ptr<const Parts> parts_;
};

}  // namespace drafthorse
