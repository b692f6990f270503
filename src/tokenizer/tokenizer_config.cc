#include "tokenizer/tokenizer_config.h"

#include "base/error.h"
#include "base/mapped_file.h"
#include "tokenizer/utf8.h"

namespace drafthorse {
namespace {

constexpr std::size_t kTemplateLimit = std::size_t{1} << 20;

/// A token is given as its content, as an object with `content`, or as null.
std::optional<std::string> read_token(const JsonObject& config, const std::string& key) {
  const Json* value = config.find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  if (!value->is_object()) config.fail(key, "must be a token's content, an object with `content`, or null");
  const auto content = config.object(key)->string("content");
  if (!content) config.fail(key, "has no `content`");
  return content;
}

std::vector<ChatTemplate> read_templates(const JsonObject& config) {
  const std::string key = "chat_template";
  std::vector<ChatTemplate> templates;
  const Json* value = config.find(key);
  if (value == nullptr) return templates;
  const auto add = [&](const std::string& name, const std::string& text) {
    if (text.size() > kTemplateLimit)
      config.fail(key, "is over the limit of " + std::to_string(kTemplateLimit) + " bytes");
    templates.push_back({name, text, config.source()});
  };
  if (value->is_string()) {
    add("default", value->get<std::string>());
    return templates;
  }
  if (!value->is_array()) config.fail(key, "must be a string or a list of {name, template}");
  for (const Json& item : *value) {
    const JsonObject entry(item, config.source(), key + "[" + std::to_string(templates.size()) + "].");
    const auto name = entry.string("name");
    const auto text = entry.string("template");
    if (!name || !text) config.fail(key, "must be a string or a list of {name, template}");
    for (const ChatTemplate& known : templates) {
      if (known.name == *name) entry.fail("name", "listed twice");
    }
    add(*name, *text);
  }
  return templates;
}

}  // namespace

TokenizerConfig TokenizerConfig::read(const Json& json, const std::string& source) {
  const JsonObject object(json, source);
  TokenizerConfig config;
  config.source = source;
  config.bos_token = read_token(object, "bos_token");
  config.eos_token = read_token(object, "eos_token");
  config.pad_token = read_token(object, "pad_token");
  config.unk_token = read_token(object, "unk_token");
  config.add_bos_token = object.boolean("add_bos_token");
  config.add_eos_token = object.boolean("add_eos_token");
  config.chat_templates = read_templates(object);
  return config;
}

void TokenizerConfig::read_template_files(const std::string& folder) {
  const std::string jinja = folder + "/chat_template.jinja";
  const std::string json = folder + "/chat_template.json";
  if (is_listed(jinja)) {
    std::string text = read_text_file(jinja, kTemplateLimit);
    if (const auto bad = find_invalid_utf8(text); bad != std::string::npos) {
      throw Error(jinja + ": not valid UTF-8 at byte " + std::to_string(bad));
    }
    chat_templates = {{"default", std::move(text), jinja}};
  } else if (is_listed(json)) {
    const Json document = read_json_file(json);
    const JsonObject object(document, json);
    if (!object.has("chat_template")) object.fail("chat_template", "missing");
    chat_templates = read_templates(object);
  }
}

}  // namespace drafthorse
