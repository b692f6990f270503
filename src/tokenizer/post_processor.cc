#include "tokenizer/post_processor.h"

#include "base/error.h"
#include "tokenizer/component.h"

namespace drafthorse {
namespace {

/// The ids of `special_tokens[name]` of a template.
std::vector<std::int32_t> ids_of(const Component& component, const std::string& name, const TokenTable& tokens) {
  const std::string path = "special_tokens";
  const auto all = component.fields.object(path);
  const auto entry = all ? all->object(name) : std::nullopt;
  if (!entry) component.fail("special_tokens has no entry \"" + name + "\"");
  const auto listed = entry->integers("ids");
  if (!listed) entry->fail("ids", "missing");
  std::vector<std::int32_t> ids;
  for (const std::int64_t id : *listed) {
    if (id < 0 || id >= TokenTable::kIdLimit || !tokens.has(static_cast<std::int32_t>(id))) {
      entry->fail("ids", "no token has the id " + std::to_string(id));
    }
    ids.push_back(static_cast<std::int32_t>(id));
  }
  return ids;
}

void read_template(const Component& component, const TokenTable& tokens, PostProcessor& out) {
  component.allow({"single", "pair", "special_tokens"});
  std::vector<std::int32_t> prefix;
  std::vector<std::int32_t> suffix;
  bool behind_text = false;
  component.for_each("single", [&](const Json& item, const std::string& where) {
    const Json* text = item.is_object() && item.size() == 1 ? &*item.begin() : nullptr;
    const std::string kind = text != nullptr && text->is_object() ? item.begin().key() : "";
    const std::string id =
        kind.empty() ? "" : JsonObject(*text, component.source, where + ".").string("id").value_or("");
    if (kind == "SpecialToken") {
      auto& side = behind_text ? suffix : prefix;
      const auto ids = ids_of(component, id, tokens);
      side.insert(side.end(), ids.begin(), ids.end());
    } else if (kind == "Sequence" && id == "A" && !behind_text) {
      behind_text = true;
    } else {
      throw Error(component.source + ": " + where + " = " + brief(item) +
                  ": must be a SpecialToken or, once, the Sequence A");
    }
  });
  if (!behind_text) component.fields.fail("single", "lacks the Sequence A, the text itself");
  out.prefix.insert(out.prefix.begin(), prefix.begin(), prefix.end());
  out.suffix.insert(out.suffix.end(), suffix.begin(), suffix.end());
  out.has_template = true;
}

void read_component(const Json& json, const TokenTable& tokens, const std::string& source, const std::string& where,
                    PostProcessor& out) {
  const Component component(json, source, where);
  if (component.type == "Sequence") {
    component.allow({"processors"});
    component.for_each("processors", [&](const Json& item, const std::string& path) {
      read_component(item, tokens, source, path, out);
    });
  } else if (component.type == "ByteLevel") {
    component.allow({"add_prefix_space", "trim_offsets", "use_regex"});  // offsets only
  } else if (component.type == "TemplateProcessing") {
    read_template(component, tokens, out);
  } else {
    component.fail_type();
  }
}

}  // namespace

PostProcessor PostProcessor::read(const Json& component, const TokenTable& tokens, const std::string& source) {
  PostProcessor out;
  if (!component.is_null()) read_component(component, tokens, source, "post_processor", out);
  return out;
}

}  // namespace drafthorse
