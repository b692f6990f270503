#include "checkpoint/config_keys.h"

#include <utility>

#include "base/check.h"

namespace drafthorse {

ConfigKeys::ConfigKeys(std::vector<JsonObject> objects) : objects_(std::move(objects)) {
  DRAFTHORSE_CHECK(!objects_.empty(), "a config is read from at least one object");
}

const JsonObject& ConfigKeys::where(const std::string& key) const {
  for (const JsonObject& object : objects_) {
    if (object.has(key)) return object;
  }
  return objects_.back();
}

bool ConfigKeys::has(const std::string& key) const { return where(key).has(key); }

int ConfigKeys::positive(const std::string& key, std::int64_t limit, std::optional<std::int64_t> fallback) const {
  const std::optional<std::int64_t> value = integer(key);
  if (!value && !fallback) fail(key, "missing; a whole number from 1 to " + std::to_string(limit) + " is required");
  const std::int64_t number = value.value_or(fallback.value_or(0));
  if (number < 1 || number > limit) {
    const std::string assumed = value ? "" : "absent, which means " + std::to_string(number) + "; ";
    fail(key, assumed + "must be from 1 to " + std::to_string(limit));
  }
  return static_cast<int>(number);
}

double ConfigKeys::positive_number(const std::string& key, std::optional<double> fallback) const {
  const std::optional<double> value = number(key);
  if (!value && !fallback) fail(key, "missing; a number above 0 is required");
  if (value && *value <= 0) fail(key, "must be above 0");
  return value ? *value : *fallback;
}

}  // namespace drafthorse
