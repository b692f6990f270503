#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/post_processor.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/token_decoder.h"
#include "tokenizer/token_table.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_file.h"

namespace drafthorse {

/// Everything a tokenizer is made of, read and checked. Inside the room only.
struct Tokenizer::Parts {
  /// Throws Error; see Tokenizer::load.
  Parts(TokenizerFile file, TokenizerConfig config, const std::string& source);

  TokenTable vocab;   ///< model.vocab: what BPE may use
  TokenTable tokens;  ///< model.vocab and added_tokens
  TokenizerConfig config;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  TokenDecoder decoder;
  PostProcessor post_processor;
  std::vector<bool> special;            ///< by id
  AddedTokenMatcher raw_tokens;         ///< looked for in the raw text
  AddedTokenMatcher normalized_tokens;  ///< looked for in the normalised text
  std::unique_ptr<const Bpe> bpe;
  std::string decoded;                         ///< the bytes of every token, one behind the other
  std::vector<std::uint32_t> decoded_offsets;  ///< of each id in `decoded`, and the end
  std::optional<std::int32_t> bos_id, eos_id, pad_id;

 private:
  void add_tokens(const std::vector<AddedToken>& added, const std::string& source);
  void read_model(const TokenizerFile& file, const std::string& source);
  void read_config();
  void decode_all();
};

}  // namespace drafthorse
