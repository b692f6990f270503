#include "checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/config_rules.h"
#include "checkpoint/packed_stacks.h"
#include "checkpoint/shards.h"

namespace drafthorse {
namespace {

constexpr std::uint64_t kMaxHeader = std::uint64_t{100} << 20;
constexpr std::size_t kLengthBytes = 8;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The JSON text of the header. Looks-alikes that people often have by mistake get their own message.
std::string_view header_text(std::span<const std::byte> file, const std::string& source) {
  if (as_text(file).substr(0, 4) == "GGUF") throw Error(source + ": is a GGUF file; a safetensors file is expected");
  if (as_text(file).substr(0, 23) == "version https://git-lfs") {
    throw Error(source + ": is a Git LFS pointer, not the weights themselves; fetch them with: git lfs pull");
  }
  if (file.size() < kLengthBytes) {
    throw Error(source + ": has " + std::to_string(file.size()) +
                " bytes, a safetensors file starts with a header length of 8; is the download complete?");
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  if (length > kMaxHeader) {
    throw Error(source + ": header length " + std::to_string(length) + " is more than the limit of " +
                std::to_string(kMaxHeader) + " bytes; not a safetensors file?");
  }
  if (length > file.size() - kLengthBytes) {
    throw Error(source + ": header of " + std::to_string(length) + " bytes needs a file of at least " +
                std::to_string(kLengthBytes + length) + ", this one has " + std::to_string(file.size()) +
                "; is the download complete?");
  }
  return as_text(file.subspan(kLengthBytes, static_cast<std::size_t>(length)));
}

/// Checks the metadata and returns what it says about packed stacks, if anything.
std::optional<std::string> packed_description(const Json& value, const std::string& source) {
  if (value.is_null()) return std::nullopt;
  const JsonObject metadata(value, source, "__metadata__.");
  for (const auto& item : value.items()) {
    if (!item.value().is_string()) metadata.fail(item.key(), "must be a string");
  }
  return metadata.string(std::string(kPackedKey));
}

ElementType parse_element_type(const JsonObject& entry) {
  const auto name = entry.string("dtype");
  if (!name) entry.fail("dtype", "missing");
  if (const auto type = element_type(*name)) return *type;
  if (name->starts_with("F8") || name->starts_with("F6") || name->starts_with("F4")) {
    entry.fail("dtype", "floats of 8 bits or less are not supported; use a checkpoint with BF16, F16 or F32 weights");
  }
  entry.fail("dtype", "unknown element type");
}

std::vector<std::int64_t> parse_shape(const JsonObject& entry) {
  auto shape = entry.integers("shape");
  if (!shape) entry.fail("shape", "missing");
  const bool empty = std::find(shape->begin(), shape->end(), 0) != shape->end();
  std::int64_t elements = 1;
  for (const std::int64_t extent : *shape) {
    if (extent < 0) entry.fail("shape", "a dimension is negative");
    if (extent > kMaxElements || (!empty && extent > kMaxElements / elements)) {
      entry.fail("shape", "more than 2^40 elements");
    }
    if (!empty) elements *= extent;
  }
  return std::move(*shape);
}

/// A tensor and where its bytes lie: [begin, end) counted from the end of the header.
struct Entry {
  TensorView view;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

Entry parse_entry(const std::string& name, const Json& value, const std::string& source) {
  const JsonObject object(value, source, tensor_text(name) + ".");
  Entry entry;
  entry.view.name = name;
  entry.view.type = parse_element_type(object);
  entry.view.shape = parse_shape(object);
  const auto offsets = object.integers("data_offsets");
  if (!offsets) object.fail("data_offsets", "missing");
  if (offsets->size() != 2 || (*offsets)[0] < 0 || (*offsets)[1] < (*offsets)[0]) {
    object.fail("data_offsets", "must be two numbers [begin, end] with 0 <= begin <= end");
  }
  entry.begin = static_cast<std::uint64_t>((*offsets)[0]);
  entry.end = static_cast<std::uint64_t>((*offsets)[1]);
  const std::uint64_t expected =
      static_cast<std::uint64_t>(entry.view.elements()) * static_cast<std::uint64_t>(element_bytes(entry.view.type));
  if (entry.end - entry.begin != expected) {
    object.fail("data_offsets", "spans " + std::to_string(entry.end - entry.begin) + " bytes, but shape " +
                                    shape_text(entry.view.shape) + " of " + std::string(element_name(entry.view.type)) +
                                    " takes " + std::to_string(expected));
  }
  return entry;
}

/// Checks that `entries`, sorted by offset, cover [0, size) without gap or overlap.
void check_layout(const std::vector<Entry>& entries, std::uint64_t size, const std::string& source) {
  for (const Entry& entry : entries) {
    if (entry.end <= size) continue;
    throw Error(source + ": " + tensor_text(entry.view.name) + " ends at byte " + std::to_string(entry.end) +
                " of the data, the file holds only " + std::to_string(size) + "; is the download complete?");
  }
  std::uint64_t covered = 0;
  const Entry* previous = nullptr;
  for (const Entry& entry : entries) {
    if (entry.begin != covered) {
      const std::string after = previous == nullptr ? "the header" : tensor_text(previous->view.name);
      throw Error(source + ": " + tensor_text(entry.view.name) + " starts at byte " + std::to_string(entry.begin) +
                  " of the data, " + after + " ends at byte " + std::to_string(covered) +
                  (entry.begin < covered ? ": they overlap" : ": a gap that no tensor explains"));
    }
    covered = entry.end;
    previous = &entry;
  }
  if (covered != size) {
    throw Error(source + ": tensors take " + std::to_string(covered) + " bytes of data, the file holds " +
                std::to_string(size) + ": trailing bytes that no tensor explains");
  }
}

/// Any number of safetensors files under one set of names.
class SafetensorsSource final : public TensorSource {
 public:
  explicit SafetensorsSource(std::string path) : path_(std::move(path)) {}

  /// Opens `file` and adds its tensors. Throws Error for a name that another file has already brought.
  void add(const std::string& file) {
    const auto mapped = std::make_shared<const MappedFile>(file);
    SafetensorsFile parsed = parse_safetensors(mapped->bytes(), file);
    for (PackedStack& stack : parsed.stacks) {
      stack.file = mapped.get();
      stacks_.push_back(std::move(stack));
    }
    for (TensorView& view : parsed.tensors) {
      view.file = mapped.get();
      const auto [at, fresh] = tensors_.try_emplace(view.name, std::move(view));
      if (!fresh) {
        throw Error(file + ": " + tensor_text(at->first) + " is also in " + at->second.file->path());
      }
    }
    files_.push_back(mapped);
  }
  /// Checks that the tensors are where `index` says, then forgets those that it does not mention.
  void restrict_to(const ShardIndex& index) {
    std::vector<std::string> missing;
    for (const auto& [name, file] : index.tensors) {
      const auto at = tensors_.find(name);
      if (at == tensors_.end() || at->second.file->path() != file)
        missing.push_back(brief(Json(name)) + " (in " + file + ")");
    }
    if (!missing.empty()) throw Error(index.source + ": tensors missing from their files: " + name_list(missing));
    for (auto at = tensors_.begin(); at != tensors_.end();) {
      at = index.tensors.contains(at->first) ? std::next(at) : tensors_.erase(at);
    }
  }

  const TensorView* find(std::string_view name) const override {
    const auto at = tensors_.find(name);
    return at == tensors_.end() ? nullptr : &at->second;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto& item : tensors_) all.push_back(item.first);
    return all;
  }
  std::span<const PackedStack> stacks() const override { return stacks_; }
  const std::string& path() const override { return path_; }

 private:
  std::string path_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<PackedStack> stacks_;
  std::map<std::string, TensorView, std::less<>> tensors_;
};

}  // namespace

SafetensorsFile parse_safetensors(std::span<const std::byte> file, const std::string& source) {
  const std::string_view text = header_text(file, source);
  const Json header = parse_json(text, source);
  if (!header.is_object()) throw Error(source + ": the header is not a JSON object but " + brief(header));
  std::vector<Entry> entries;
  std::optional<std::string> packed;
  for (const auto& item : header.items()) {
    if (item.key() == "__metadata__") {
      packed = packed_description(item.value(), source);
    } else {
      entries.push_back(parse_entry(item.key(), item.value(), source));
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.view.name) < std::tie(b.begin, b.end, b.view.name);
  });
  const auto data = file.subspan(kLengthBytes + text.size());
  check_layout(entries, data.size(), source);
  SafetensorsFile result;
  result.tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    entry.view.bytes =
        data.subspan(static_cast<std::size_t>(entry.begin), static_cast<std::size_t>(entry.end - entry.begin));
    result.tensors.push_back(std::move(entry.view));
  }
  if (packed) result.stacks = take_packed_stacks(*packed, file, source, result.tensors);
  return result;
}

std::unique_ptr<TensorSource> open_safetensors(const std::string& path) {
  const ShardSet set = find_shards(path);
  auto source = std::make_unique<SafetensorsSource>(path);
  for (const std::string& file : set.files) source->add(file);
  if (set.index) source->restrict_to(*set.index);
  return source;
}

}  // namespace drafthorse
