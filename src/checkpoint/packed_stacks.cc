#include "checkpoint/packed_stacks.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/config_rules.h"
#include "quant/packed_matrix.h"

namespace drafthorse {
namespace {

constexpr std::size_t kAlignment = 64;  // of a stream in its file; maps begin on pages

std::int64_t positive(const JsonObject& object, const std::string& key, std::int64_t limit) {
  const auto number = object.integer(key);
  if (!number) object.fail(key, "missing");
  if (*number < 1 || *number > limit) object.fail(key, "must be from 1 to " + std::to_string(limit));
  return *number;
}

std::string text_of(const JsonObject& object, const std::string& key) {
  const auto text = object.string(key);
  if (!text) object.fail(key, "missing");
  return *text;
}

/// The list `key`, one object an entry.
std::vector<JsonObject> objects(const JsonObject& object, const std::string& key, const std::string& prefix) {
  const Json* list = object.find(key);
  if (list == nullptr || !list->is_array() || list->empty()) object.fail(key, "must be a list with an entry");
  std::vector<JsonObject> all;
  for (std::size_t i = 0; i < list->size(); ++i) {
    all.emplace_back((*list)[i], object.source(), prefix + key + "[" + std::to_string(i) + "].");
  }
  return all;
}

StackPart parse_part(const JsonObject& object) {
  StackPart part;
  part.name = text_of(object, "name");
  part.total = positive(object, "total", kMaxVocab);
  part.rows = positive(object, "rows", part.total);
  part.first = object.integer("first").value_or(0);
  if (part.first < 0 || part.first > part.total - part.rows) object.fail("first", "its rows end after the tensor's");
  return part;
}

PackedStack parse_stack(const JsonObject& object, const std::string& prefix) {
  PackedStack stack;
  const auto type = weight_type(text_of(object, "type"));
  if (!type) object.fail("type", "unknown; it must be one of " + weight_names());
  stack.type = *type;
  stack.cols = positive(object, "cols", kMaxWidth);
  for (const JsonObject& part : objects(object, "parts", prefix)) stack.parts.push_back(parse_part(part));
  if (stack.rows() > kMaxElements / stack.cols) object.fail("parts", "more than 2^40 elements");
  return stack;
}

/// Raw streams by name, and what the stacks say about matrices.
class Streams {
 public:
  Streams(std::span<const std::byte> file, std::vector<TensorView>& tensors) : file_(file) {
    for (TensorView& view : tensors) views_.emplace(view.name, &view);
  }

  /// Gives `stack` the bytes of the tensor that `object` names.
  void attach(const JsonObject& object, PackedStack& stack) {
    const std::string name = text_of(object, "tensor");
    const auto at = views_.find(name);
    if (at == views_.end()) object.fail("tensor", "is not in this file, or was used before");
    const TensorView& view = *at->second;
    const std::uint64_t expected = packed_bytes(stack.type, stack.rows(), stack.cols);
    if (view.type != ElementType::kU8 || view.bytes.size() != expected) {
      object.fail("tensor", "holds " + std::to_string(view.bytes.size()) + " bytes of " +
                                std::string(element_name(view.type)) + " where " +
                                std::string(weight_name(stack.type)) + " " + shape_text({stack.rows(), stack.cols}) +
                                " takes " + std::to_string(expected) + " of U8");
    }
    if (static_cast<std::size_t>(view.bytes.data() - file_.data()) % kAlignment != 0) {
      object.fail("tensor", "does not begin at a multiple of " + std::to_string(kAlignment) + " bytes in the file");
    }
    stack.bytes = view.bytes;
    stack.file = view.file;
    streams_.insert(name);
    views_.erase(at);
  }

  /// Notes the matrices of `stack`. Throws Error when another stack says otherwise about one.
  void note(const JsonObject& object, const PackedStack& stack) {
    for (const StackPart& part : stack.parts) {
      if (views_.contains(part.name)) continue;  // there in plain form too: an embedding table that is the head as well
      TensorView view{.name = part.name, .type = ElementType::kU8, .shape = {part.total, stack.cols}, .bytes = {}};
      view.packed = stack.type;
      const auto [at, fresh] = packed_.try_emplace(part.name, std::move(view));
      if (!fresh && (at->second.shape != std::vector{part.total, stack.cols} || at->second.packed != stack.type)) {
        object.fail("parts", tensor_text(part.name) + " is of another shape or type in an earlier stack");
      }
    }
  }

  /// Leaves plain and packed matrices in `tensors`.
  void finish(std::vector<TensorView>& tensors) {
    std::erase_if(tensors, [&](const TensorView& view) { return streams_.contains(view.name); });
    for (auto& item : packed_) tensors.push_back(std::move(item.second));
  }

 private:
  std::span<const std::byte> file_;
  std::map<std::string, const TensorView*, std::less<>> views_;  // those no stack has taken
  std::set<std::string> streams_;
  std::map<std::string, TensorView, std::less<>> packed_;
};

}  // namespace

std::vector<PackedStack> take_packed_stacks(const std::string& description, std::span<const std::byte> file,
                                            const std::string& source, std::vector<TensorView>& tensors) {
  const std::string prefix = "__metadata__." + std::string(kPackedKey) + ".";
  const Json json = parse_json(description, source + ": " + prefix.substr(0, prefix.size() - 1));
  const JsonObject top(json, source, prefix);
  const auto layout = top.integer("layout");
  if (!layout) top.fail("layout", "missing");
  if (*layout != kPackedLayout) {
    top.fail("layout", "this version reads layout " + std::to_string(kPackedLayout) +
                           "; make the folder again with: drafthorse quantize");
  }
  Streams streams(file, tensors);
  std::vector<PackedStack> stacks;
  const std::vector<JsonObject> entries = objects(top, "stacks", prefix);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    stacks.push_back(parse_stack(entries[i], prefix + "stacks[" + std::to_string(i) + "]."));
    streams.attach(entries[i], stacks.back());
  }
  // Only now are all streams taken, so that none of them passes for a plain matrix.
  for (std::size_t i = 0; i < entries.size(); ++i) streams.note(entries[i], stacks[i]);
  streams.finish(tensors);
  return stacks;
}

std::string describe_packed_stacks(std::span<const PackedStack> stacks) {
  Json list = Json::array();
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    Json parts = Json::array();
    for (const StackPart& part : stacks[i].parts) {
      parts.push_back({{"name", part.name}, {"rows", part.rows}, {"first", part.first}, {"total", part.total}});
    }
    list.push_back({{"tensor", stack_tensor(i)},
                    {"type", std::string(weight_name(stacks[i].type))},
                    {"cols", stacks[i].cols},
                    {"parts", std::move(parts)}});
  }
  return Json{{"layout", kPackedLayout}, {"stacks", std::move(list)}}.dump();
}

std::string stack_tensor(std::size_t index) { return "packed." + std::to_string(index); }

}  // namespace drafthorse
