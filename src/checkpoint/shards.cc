#include "checkpoint/shards.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/json.h"

namespace drafthorse {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".safetensors";

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::string in_folder(const std::string& folder, const std::string& name) { return (fs::path(folder) / name).string(); }

/// Whether `name` can only mean a file of the folder itself.
bool is_plain_name(const std::string& name) {
  const bool odd = std::any_of(name.begin(), name.end(),
                               [](char c) { return c == '/' || c == '\\' || static_cast<unsigned char>(c) < ' '; });
  return !name.empty() && !odd && name.find("..") == std::string::npos && name != ".";
}

ShardSet read_index(const std::string& folder, const std::string& file) {
  const Json document = read_json_file(file);
  const JsonObject index(document, file);
  const auto map = index.object("weight_map");
  if (!map) index.fail("weight_map", "missing");
  ShardSet set{{}, ShardIndex{file, {}}};
  std::set<std::string> shards;
  for (const auto& item : map->json().items()) {
    // item.value() and not map->string(): a look-up by key is linear, and an index may hold a hundred thousand tensors.
    const auto* shard = item.value().get_ptr<const std::string*>();
    if (shard == nullptr || !is_plain_name(*shard)) {
      throw Error(file + ": weight_map." + brief(Json(item.key())) + " = " + brief(item.value()) +
                  ": must be the name of a file in the same folder");
    }
    set.index->tensors.emplace(item.key(), in_folder(folder, *shard));
    shards.insert(*shard);
  }
  if (shards.empty()) index.fail("weight_map", "names no tensor");
  std::vector<std::string> missing;
  for (const std::string& shard : shards) {
    set.files.push_back(in_folder(folder, shard));
    if (!is_there(set.files.back())) missing.push_back(shard);
  }
  if (!missing.empty()) {
    throw Error(file + ": " + std::to_string(missing.size()) + " of " + std::to_string(shards.size()) +
                " files are missing from the folder: " + name_list(missing) + "; is the download complete?");
  }
  return set;
}

/// "x-00002-of-00003.safetensors" taken apart; nothing for other names.
struct Numbered {
  std::string stem;
  std::string total;
  std::uint64_t part = 0;
  std::uint64_t parts = 0;
};

std::optional<Numbered> numbered(const std::string& name) {
  constexpr std::size_t kDigits = 5;
  constexpr std::string_view kOf = "-of-";
  constexpr std::size_t kTail = 1 + kDigits + kOf.size() + kDigits + kSuffix.size();
  if (name.size() <= kTail) return std::nullopt;
  const std::string tail = name.substr(name.size() - kTail);
  const std::string part = tail.substr(1, kDigits);
  const std::string total = tail.substr(1 + kDigits + kOf.size(), kDigits);
  const auto digits = [](const std::string& text) { return text.find_first_not_of("0123456789") == std::string::npos; };
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf || !digits(part) || !digits(total))
    return std::nullopt;
  return Numbered{name.substr(0, name.size() - kTail), total, std::stoull(part), std::stoull(total)};
}

/// Checks that numbered names are there from 1 to their total.
void check_numbering(const std::string& folder, const std::set<std::string>& names) {
  std::set<std::string> missing;
  for (const std::string& name : names) {
    const auto number = numbered(name);
    if (!number) continue;
    for (std::uint64_t part = 1; part <= number->parts; ++part) {
      const std::string digits = std::to_string(part);
      const std::string sibling = number->stem + "-" + std::string(5 - digits.size(), '0') + digits + "-of-" +
                                  number->total + std::string(kSuffix);
      if (!names.contains(sibling)) missing.insert(sibling);
    }
  }
  if (!missing.empty()) {
    throw Error(folder + ": files are missing: " + name_list({missing.begin(), missing.end()}) +
                "; is the download complete?");
  }
}

std::set<std::string> model_files(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with("model") && name.ends_with(kSuffix)) names.insert(name);
  }
  if (error) throw Error(folder + ": cannot list: " + error.message());
  return names;
}

}  // namespace

std::string name_list(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 50;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

ShardSet find_shards(const std::string& path) {
  std::error_code error;
  if (!is_there(path))
    throw Error(path + ": does not exist; a safetensors file, or a folder that has one, is expected");
  if (!fs::is_directory(path, error)) return {{path}, std::nullopt};
  if (const std::string index = in_folder(path, "model.safetensors.index.json"); is_there(index)) {
    return read_index(path, index);
  }
  if (const std::string single = in_folder(path, "model.safetensors"); is_there(single))
    return {{single}, std::nullopt};
  const std::set<std::string> names = model_files(path);
  if (names.empty()) {
    throw Error(path + ": has no weights; expected model.safetensors, or model.safetensors.index.json with its shards");
  }
  check_numbering(path, names);
  ShardSet set;
  for (const std::string& name : names) set.files.push_back(in_folder(path, name));
  return set;
}

}  // namespace drafthorse
