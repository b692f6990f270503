#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "tokenizer/merge_list.h"
#include "tokenizer/token_table.h"

namespace drafthorse {

/// The text of a tokenizer.json taken apart: its two huge parts into their own tables as they are read, the rest as a
/// document.
struct TokenizerFile {
  Json rest;         ///< everything but model.vocab and model.merges
  TokenTable vocab;  ///< model.vocab
  MergeList merges;  ///< model.merges, in file order

  /// Throws Error naming `source` and the place for what base/json.h refuses (not JSON, invalid UTF-8, duplicate keys,
  /// nesting, length), an entry of vocab that is not a unique id in [0, 2^24), a merge that is not two parts, and a
  /// missing or empty vocab.
  static TokenizerFile read(std::string_view text, const std::string& source);
};

}  // namespace drafthorse
