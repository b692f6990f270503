#include "tokenizer/component.h"

#include <algorithm>

#include "base/error.h"

namespace drafthorse {

Component::Component(const Json& json, const std::string& file, const std::string& path)
    : fields(json, file, path + "."), source(file), where(path) {
  type = required_string("type");
}

void Component::allow(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : fields.json().items()) {
    if (key == "type" || std::find(known.begin(), known.end(), key) != known.end()) continue;
    throw Error(source + ": " + where + "." + key + " = " + brief(value) + ": unknown option of " + type);
  }
}

void Component::fail_type() const { fields.fail("type", "not supported here"); }

void Component::fail(const std::string& what) const { throw Error(source + ": " + where + ": " + what); }

std::string Component::required_string(const std::string& key) const {
  const auto value = fields.string(key);
  if (!value) fields.fail(key, "missing");
  return *value;
}

std::int64_t Component::required_integer(const std::string& key) const {
  const auto value = fields.integer(key);
  if (!value) fields.fail(key, "missing");
  return *value;
}

ComponentPattern read_pattern(const Component& component) {
  const Json* pattern = component.fields.find("pattern");
  if (pattern == nullptr || !pattern->is_object() || pattern->size() != 1 || !pattern->begin()->is_string()) {
    component.fields.fail("pattern", R"(must be {"String": text} or {"Regex": text})");
  }
  const std::string& key = pattern->begin().key();
  const auto& text = pattern->begin()->get_ref<const std::string&>();
  if (text.empty()) component.fields.fail("pattern", "is empty");
  if (key == "String") return {ComponentPattern::Kind::kString, text};
  if (key == "Regex") return {ComponentPattern::Kind::kRegex, text};
  component.fields.fail("pattern", R"(must be {"String": text} or {"Regex": text})");
}

}  // namespace drafthorse
