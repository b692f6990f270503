#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drafthorse {

/// Keeps keys in file order, so that "first" and "duplicate" mean what the file says.
using Json = nlohmann::ordered_json;

/// Limits for JSON from strangers.
struct JsonLimits {
  int depth = 64;                              ///< nesting of arrays and objects
  std::size_t bytes = std::size_t{256} << 20;  ///< length of the text
};

/// Parses one JSON document. Throws Error naming `source` (a file or "request body") and the byte offset for: text that
/// is not JSON, invalid UTF-8, a duplicate key, nesting or length over the limits, trailing text.
Json parse_json(std::string_view text, const std::string& source, const JsonLimits& limits = {});
/// parse_json of a file's text.
Json read_json_file(const std::string& path, const JsonLimits& limits = {});

/// Typed reading of one JSON object, with errors that name file, key and value. A null value counts as absent.
class JsonObject {
 public:
  /// `object` must outlive this view. Throws Error when it is not an object. `prefix` is put before keys in messages
  /// ("dflash_config.").
  JsonObject(const Json& object, std::string source, std::string prefix = "");

  bool has(const std::string& key) const;          ///< present and not null
  const Json* find(const std::string& key) const;  ///< nullptr when absent or null
  std::optional<std::int64_t> integer(
      const std::string& key) const;                           ///< integral numbers only (8.0 counts, 8.5 is an error)
  std::optional<double> number(const std::string& key) const;  ///< finite numbers only
  std::optional<bool> boolean(const std::string& key) const;
  std::optional<std::string> string(const std::string& key) const;
  std::optional<std::vector<std::int64_t>> integers(const std::string& key) const;
  std::optional<std::vector<std::string>> strings(const std::string& key) const;
  std::optional<JsonObject> object(const std::string& key) const;

  const std::string& source() const { return source_; }
  const Json& json() const { return *object_; }
  /// "file: key: value: what" for an error about this key.
  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

 private:
  const Json* object_;
  std::string source_;
  std::string prefix_;
};

/// `value` as JSON text cut to a length fit for an error message.
std::string brief(const Json& value);

}  // namespace drafthorse
