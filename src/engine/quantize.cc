#include "engine/quantize.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "checkpoint/packed_stacks.h"
#include "checkpoint/safetensors_writer.h"
#include "engine/model_files.h"
#include "model/layers/linear_spec.h"
#include "model/layers/weight_loader.h"

namespace drafthorse {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kSmallFile = std::uintmax_t{64} << 20;  // configs, tokenizers, licences; not weights

/// The folder that is being made. Unless keep() is called, what was put into it goes away again.
class NewFolder {
 public:
  explicit NewFolder(const std::string& path) : path_(path) {
    std::error_code error;
    const fs::file_status status = fs::status(path_, error);
    if (fs::exists(status)) {
      if (!fs::is_directory(status)) throw Error(path + ": is there and is no folder; name one that is not there yet");
      if (!fs::is_empty(path_, error) || error)
        throw Error(path + ": is not empty; name a folder that is not there yet");
      return;
    }
    if (!fs::create_directories(path_, error) || error) throw Error(path + ": cannot be made: " + error.message());
    made_ = true;
  }
  ~NewFolder() {
    if (kept_) return;
    std::error_code ignored;
    for (const fs::path& file : files_) fs::remove(file, ignored);
    if (made_) fs::remove(path_, ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// The path of a file that is going to be in it.
  fs::path file(const fs::path& name) { return files_.emplace_back(path_ / name); }
  void keep() { kept_ = true; }

 private:
  fs::path path_;
  bool made_ = false;
  bool kept_ = false;
  std::vector<fs::path> files_;
};

bool is_weights_file(const fs::path& file) {
  static const std::set<std::string> kExtensions = {".safetensors", ".bin", ".pt",      ".pth",
                                                    ".gguf",        ".h5",  ".msgpack", ".onnx"};
  return kExtensions.contains(file.extension().string()) ||
         file.filename().string().ends_with(".safetensors.index.json");
}

void copy_small_files(const std::string& in, NewFolder& out) {
  for (const fs::directory_entry& entry : fs::directory_iterator(in)) {
    if (!entry.is_regular_file() || entry.file_size() > kSmallFile || is_weights_file(entry.path())) continue;
    // Its bytes, not its mode: what is copied from a read-only folder can be edited.
    std::error_code error;
    const fs::path copy = out.file(entry.path().filename());
    if (!fs::copy_file(entry.path(), copy, error))
      throw Error(copy.string() + ": cannot be written: " + error.message());
  }
}

/// A model's tensors and which of them are linear layers.
struct Source {
  std::unique_ptr<TensorSource> tensors;
  LinearInventory inventory;
};

Source open_source(const std::string& path) {
  Source source;
  if (is_draft_folder(path)) {
    DraftFiles files = open_draft(path);
    source.inventory = draft_linears(*files.tensors, files.config);
    source.tensors = std::move(files.tensors);
  } else {
    TargetFiles files = open_target(path);
    source.inventory = target_linears(*files.tensors, files.config);
    source.tensors = std::move(files.tensors);
  }
  if (!source.tensors->stacks().empty()) {
    throw Error(path + ": is packed already (" + std::string(weight_name(source.tensors->stacks().front().type)) +
                "); give the folder it was made from");
  }
  return source;
}

/// Names that are written as they are: all but the matrices that only linear layers read, and what is passed over.
std::vector<std::string> plain_names(const Source& source) {
  std::set<std::string> out = source.inventory.unused;
  for (const LinearSpec& spec : source.inventory.linears) {
    for (const LinearPart& part : spec.parts) out.insert(part.module + ".weight");
  }
  for (const std::string& name : source.inventory.also_plain) out.erase(name);
  std::vector<std::string> names = source.tensors->names();
  std::erase_if(names, [&](const std::string& name) { return out.contains(name); });
  return names;
}

/// A name for stack i that no tensor of the model has.
void require_free_names(const Source& source) {
  for (std::size_t i = 0; i < source.inventory.linears.size(); ++i) {
    if (source.tensors->has(stack_tensor(i))) {
      throw Error(source.tensors->path() + ": " + tensor_text(stack_tensor(i)) +
                  ": the name is taken for packed layers");
    }
  }
}

}  // namespace

QuantizeResult quantize_folder(const std::string& in, const std::string& out, const WeightsChoice& weights,
                               ExecContext& exec, const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const Source source = open_source(in);
  require_free_names(source);
  ModelOptions options;
  options.weights = weights.type();

  std::vector<PackedStack> stacks;
  std::vector<TensorPlan> plans;
  for (const LinearSpec& spec : source.inventory.linears) {
    const WeightType type = held_type(spec, *source.tensors, options);
    const std::uint64_t bytes = packed_bytes(type, spec.rows(), spec.cols);
    plans.push_back({stack_tensor(stacks.size()), ElementType::kU8, {static_cast<std::int64_t>(bytes)}});
    stacks.push_back({.type = type, .cols = spec.cols, .parts = spec.stack_parts(), .bytes = {}});
  }
  const std::vector<std::string> plain = plain_names(source);
  for (const std::string& name : plain) {
    const TensorView& view = *source.tensors->find(name);
    plans.push_back({name, view.type, view.shape});
  }

  NewFolder folder(out);
  SafetensorsWriter writer(folder.file("model.safetensors").string(), plans,
                           {{"format", "pt"}, {std::string(kPackedKey), describe_packed_stacks(stacks)}});
  std::uint64_t written = 0;
  const auto write = [&](std::span<const std::byte> bytes) {
    writer.write(bytes);
    written += bytes.size();
    if (progress) progress(written, writer.file_bytes());
  };
  WeightLoader loader(*source.tensors, options, 0, exec);
  for (const LinearSpec& spec : source.inventory.linears) {
    const PackedMatrix matrix = loader.linear(spec);
    write({matrix.stream(), matrix.data.size()});
  }
  QuantizeResult result{.layers = stacks.size(), .before = 0, .after = writer.file_bytes(), .weights = weights.name()};
  for (const std::string& name : plain) write(source.tensors->find(name)->bytes);
  for (const std::string& name : source.tensors->names()) result.before += source.tensors->find(name)->bytes.size();
  writer.finish();
  if (progress) progress(1, 1);
  copy_small_files(in, folder);
  folder.keep();
  return result;
}

}  // namespace drafthorse
