#include "base/json.h"

#include <cmath>
#include <set>

#include "base/error.h"
#include "base/mapped_file.h"

namespace drafthorse {
namespace {

using Base = nlohmann::json_sax<Json>;

/// Builds the document while checking nesting and duplicate keys as they are read, before memory is spent on them.
class Builder : public Base {
 public:
  Builder(const std::string& source, const JsonLimits& limits) : source_(source), limits_(limits) {}

  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object(), true); }
  bool start_array(std::size_t) override { return open(Json::array(), false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!stack_.back().keys.insert(name).second)
      throw Error(source_ + ": duplicate key \"" + name.substr(0, 80) + "\"");
    // A JSON object that keeps order looks keys up one by one; appending to its vector keeps large objects linear.
    auto& object = stack_.back().node->get_ref<Json::object_t&>();
    static_cast<std::vector<Json::object_t::value_type>&>(object).emplace_back(std::move(name), Json());
    slot_ = &object.back().second;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    std::string what = e.what();
    if (const auto bracket = what.find("] "); bracket != std::string::npos)
      what = what.substr(bracket + 2);  // "[json.exception...] "
    throw Error(source_ + ": not valid JSON at byte " + std::to_string(position) + ": " + what.substr(0, 160));
  }

 private:
  struct Level {
    Json* node;
    std::set<std::string> keys;
  };

  Json* place(Json&& value) {
    if (stack_.empty()) return &(root_ = std::move(value));
    if (slot_ != nullptr) {
      *slot_ = std::move(value);
      return std::exchange(slot_, nullptr);
    }
    auto& array = stack_.back().node->get_ref<Json::array_t&>();
    array.push_back(std::move(value));
    return &array.back();
  }
  bool put(Json&& value) {
    place(std::move(value));
    return true;
  }
  bool open(Json&& value, bool) {
    if (static_cast<int>(stack_.size()) >= limits_.depth) {
      throw Error(source_ + ": nested deeper than " + std::to_string(limits_.depth) + " levels");
    }
    stack_.push_back({place(std::move(value)), {}});
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  const std::string& source_;
  const JsonLimits& limits_;
  Json root_;
  std::vector<Level> stack_;
  Json* slot_ = nullptr;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& source, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    throw Error(source + ": " + std::to_string(text.size()) + " bytes of JSON, more than the limit of " +
                std::to_string(limits.bytes));
  }
  Builder builder(source, limits);
  Json::sax_parse(text, &builder);
  return builder.take();
}

Json read_json_file(const std::string& path, const JsonLimits& limits) {
  return parse_json(read_text_file(path, limits.bytes), path, limits);
}

std::string brief(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

JsonObject::JsonObject(const Json& object, std::string source, std::string prefix)
    : object_(&object), source_(std::move(source)), prefix_(std::move(prefix)) {
  if (!object.is_object()) {
    const std::string where = prefix_.empty() ? "" : prefix_.substr(0, prefix_.size() - 1) + ": ";
    throw Error(source_ + ": " + where + "expected an object, found " + brief(object));
  }
}

const Json* JsonObject::find(const std::string& key) const {
  const auto it = object_->find(key);
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

bool JsonObject::has(const std::string& key) const { return find(key) != nullptr; }

void JsonObject::fail(const std::string& key, const std::string& what) const {
  const Json* value = find(key);
  throw Error(source_ + ": " + prefix_ + key + (value != nullptr ? " = " + brief(*value) : "") + ": " + what);
}

namespace {

std::optional<std::int64_t> as_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (number == std::floor(number) && std::fabs(number) < 9e15) return static_cast<std::int64_t>(number);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> JsonObject::integer(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = as_integer(*value);
  if (!number) fail(key, "must be a whole number");
  return number;
}

std::optional<double> JsonObject::number(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) fail(key, "must be a number");
  return value->get<double>();
}

std::optional<bool> JsonObject::boolean(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) fail(key, "must be true or false");
  return value->get<bool>();
}

std::optional<std::string> JsonObject::string(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(key, "must be a string");
  return value->get<std::string>();
}

std::optional<std::vector<std::int64_t>> JsonObject::integers(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) fail(key, "must be a list of whole numbers");
  std::vector<std::int64_t> numbers;
  for (const Json& item : *value) {
    const auto number = as_integer(item);
    if (!number) fail(key, "must be a list of whole numbers");
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<std::vector<std::string>> JsonObject::strings(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) fail(key, "must be a list of strings");
  std::vector<std::string> texts;
  for (const Json& item : *value) {
    if (!item.is_string()) fail(key, "must be a list of strings");
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

std::optional<JsonObject> JsonObject::object(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) fail(key, "must be an object");
  return JsonObject(*value, source_, prefix_ + key + ".");
}

}  // namespace drafthorse
