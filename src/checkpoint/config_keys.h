#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace drafthorse {

/// Reads configuration keys that may stand in one of several objects of the same file; the first object that has a key
/// wins (null counts as absent). Every error names file, the key with its object ("dflash_config.block_size"), and the
/// value.
class ConfigKeys {
 public:
  /// `objects`: at least one, most important first. The JSON document must outlive the reader.
  explicit ConfigKeys(std::vector<JsonObject> objects);

  bool has(const std::string& key) const;
  /// The object that has `key`, or the last one when none has.
  const JsonObject& where(const std::string& key) const;
  const std::vector<JsonObject>& objects() const { return objects_; }

  std::optional<std::int64_t> integer(const std::string& key) const { return where(key).integer(key); }
  std::optional<double> number(const std::string& key) const { return where(key).number(key); }
  std::optional<bool> boolean(const std::string& key) const { return where(key).boolean(key); }
  std::optional<std::string> string(const std::string& key) const { return where(key).string(key); }
  std::optional<std::vector<std::int64_t>> integers(const std::string& key) const { return where(key).integers(key); }
  std::optional<std::vector<std::string>> strings(const std::string& key) const { return where(key).strings(key); }
  std::optional<JsonObject> object(const std::string& key) const { return where(key).object(key); }

  /// A whole number in [1, limit]. Absent: `fallback`, or an Error that the key is missing when there is none.
  int positive(const std::string& key, std::int64_t limit, std::optional<std::int64_t> fallback = {}) const;
  /// A finite number > 0. Absent: as above.
  double positive_number(const std::string& key, std::optional<double> fallback = {}) const;

  /// Throws Error "file: key = value: what" for this key.
  [[noreturn]] void fail(const std::string& key, const std::string& what) const { where(key).fail(key, what); }

 private:
  std::vector<JsonObject> objects_;
};

}  // namespace drafthorse
