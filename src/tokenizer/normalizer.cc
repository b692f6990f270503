#include "tokenizer/normalizer.h"

#include <map>

#include "tokenizer/component.h"
#include "tokenizer/replace_all.h"
#include "tokenizer/unicode_form.h"

namespace drafthorse {

Normalizer::Normalizer(const Json& component, const std::string& source) {
  if (!component.is_null()) add(component, source, "normalizer");
}

void Normalizer::add(const Json& json, const std::string& source, const std::string& where) {
  static const std::map<std::string, UnicodeForm> kForms = {
      {"NFC", {true, false}}, {"NFD", {false, false}}, {"NFKC", {true, true}}, {"NFKD", {false, true}}};
  const Component component(json, source, where);
  if (const auto form = kForms.find(component.type); form != kForms.end()) {
    component.allow({});
    steps_.emplace_back(form->second);
  } else if (component.type == "Replace") {
    component.allow({"pattern", "content"});
    const ComponentPattern pattern = read_pattern(component);
    if (pattern.kind != ComponentPattern::Kind::kString)
      component.fields.fail("pattern", "only {\"String\": text} is supported");
    steps_.emplace_back(Replace{pattern.text, component.required_string("content")});
  } else if (component.type == "Prepend") {
    component.allow({"prepend"});
    steps_.emplace_back(Prepend{component.required_string("prepend")});
  } else if (component.type == "Sequence") {
    component.allow({"normalizers"});
    component.for_each("normalizers", [&](const Json& item, const std::string& path) { add(item, source, path); });
  } else {
    component.fail_type();
  }
}

std::string Normalizer::normalize(std::string_view text) const {
  std::string current(text);
  for (const Step& step : steps_) {
    if (current.empty()) break;
    if (const auto* form = std::get_if<UnicodeForm>(&step)) {
      current = to_unicode_form(current, form->compose, form->compatibility);
    } else if (const auto* replace = std::get_if<Replace>(&step)) {
      current = replace_all(current, replace->pattern, replace->content);
    } else {
      current.insert(0, std::get<Prepend>(step).text);
    }
  }
  return current;
}

}  // namespace drafthorse
