#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace drafthorse {

/// A chat template as text. This room does not interpret it.
struct ChatTemplate {
  std::string name;  ///< "default", or the name in a list ("tool_use")
  std::string text;
  std::string source;  ///< the file it came from, for messages
};

/// What we use of tokenizer_config.json. Everything is optional: an absent file is an empty object.
struct TokenizerConfig {
  std::string source;
  std::optional<std::string> bos_token;  ///< contents, not ids
  std::optional<std::string> eos_token;
  std::optional<std::string> pad_token;
  std::optional<std::string> unk_token;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::vector<ChatTemplate> chat_templates;

  /// Throws Error naming a key of the wrong kind. Keys we do not use may hold anything.
  static TokenizerConfig read(const Json& json, const std::string& source);

  /// Replaces chat_templates by those of `folder`/chat_template.jinja (the text itself) or else chat_template.json (its
  /// key `chat_template`), where such a file exists.
  void read_template_files(const std::string& folder);
};

}  // namespace drafthorse
