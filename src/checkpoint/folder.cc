#include "checkpoint/folder.h"

#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/mapped_file.h"

namespace drafthorse {
namespace {

constexpr const char* kExpected = "expected a Hugging Face model folder with config.json and model.safetensors";

}  // namespace

ModelFolder open_model_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw Error(path + ": does not exist; " + kExpected);
  if (!fs::is_directory(status)) throw Error(path + ": is not a folder; " + kExpected);

  const auto optional_file = [&](const char* name) -> std::optional<std::string> {
    const std::string file = (fs::path(path) / name).string();
    if (!is_listed(file)) return std::nullopt;
    return file;
  };
  const std::optional<std::string> config = optional_file("config.json");
  if (!config) throw Error(path + ": has no config.json; " + kExpected);
  return {path, *config, optional_file("generation_config.json"), optional_file("tokenizer.json"),
          optional_file("tokenizer_config.json")};
}

}  // namespace drafthorse
