#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "tokenizer/token_table.h"

namespace drafthorse {

/// The `post_processor` of tokenizer.json: the ids put around a text when special tokens are asked for.
struct PostProcessor {
  std::vector<std::int32_t> prefix;
  std::vector<std::int32_t> suffix;
  bool has_template = false;  ///< the file says what goes around a text, be it nothing

  /// Takes null, ByteLevel (adds nothing), TemplateProcessing (its "single" form) and Sequence of these; throws Error
  /// naming any other type or option, and ids that `tokens` lacks.
  static PostProcessor read(const Json& component, const TokenTable& tokens, const std::string& source);
};

}  // namespace drafthorse
