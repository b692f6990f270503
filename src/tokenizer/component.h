#pragma once

#include <initializer_list>
#include <string>

#include "base/json.h"

namespace drafthorse {

/// One component object of tokenizer.json (a normaliser, a pre-tokenizer step, ...) while it is read: its type, and a
/// watch on its keys, because a component or option we do not know would silently give other ids.
struct Component {
  /// `where` is the path of `json` in the file ("decoder.decoders[2]"). Throws Error when it is not an object or has no
  /// type.
  Component(const Json& json, const std::string& source, const std::string& where);

  std::string type;
  JsonObject fields;
  std::string source;
  std::string where;

  /// Throws Error naming the first key that is neither "type" nor in `known`.
  void allow(std::initializer_list<std::string_view> known) const;
  /// Throws Error: this type is not supported here.
  [[noreturn]] void fail_type() const;
  /// Throws Error about this component as a whole.
  [[noreturn]] void fail(const std::string& what) const;

  std::string required_string(const std::string& key) const;
  std::int64_t required_integer(const std::string& key) const;
  /// The list of sub-components of a Sequence under `key`: calls visit(Json, where) for each.
  template <typename Visit>
  void for_each(const std::string& key, const Visit& visit) const {
    const Json* list = fields.find(key);
    if (list == nullptr || !list->is_array()) fields.fail(key, "must be a list");
    for (std::size_t i = 0; i < list->size(); ++i) {
      visit((*list)[i], where + "." + key + "[" + std::to_string(i) + "]");
    }
  }
};

/// A `pattern` object: exactly one of {"String": s} and {"Regex": s}, s not empty.
struct ComponentPattern {
  enum class Kind { kString, kRegex } kind;
  std::string text;
};
ComponentPattern read_pattern(const Component& component);

}  // namespace drafthorse
