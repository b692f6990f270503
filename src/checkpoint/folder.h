#pragma once

#include <optional>
#include <string>

namespace drafthorse {

/// The files of a Hugging Face model folder, as full paths.
struct ModelFolder {
  std::string path;
  std::string config;                            ///< config.json; always there
  std::optional<std::string> generation_config;  ///< generation_config.json
  std::optional<std::string> tokenizer;          ///< tokenizer.json
  std::optional<std::string> tokenizer_config;   ///< tokenizer_config.json
};

/// Throws Error saying what is expected when `path` does not exist, is not a folder, or has no config.json.
ModelFolder open_model_folder(const std::string& path);

}  // namespace drafthorse
