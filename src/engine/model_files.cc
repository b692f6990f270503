#include "engine/model_files.h"

#include <algorithm>

#include "base/json.h"
#include "checkpoint/safetensors.h"

namespace drafthorse {

TargetFacts TargetFiles::facts() const {
  return {.layers = config.num_hidden_layers, .hidden_width = config.hidden_size, .vocab_width = config.vocab_size};
}

TargetFiles open_target(const std::string& path) {
  TargetFiles files;
  files.folder = open_model_folder(path);
  files.config = read_target_config(path);
  files.generation = read_generation_config(path);
  if (files.folder.tokenizer) files.tokenizer = Tokenizer::load(path);
  files.tensors = open_safetensors(path);
  files.stop_ids.assign(files.generation.stop_ids.begin(), files.generation.stop_ids.end());
  if (files.tokenizer) {
    for (const std::int32_t id : files.tokenizer->stop_ids()) files.stop_ids.push_back(id);
  }
  std::sort(files.stop_ids.begin(), files.stop_ids.end());
  files.stop_ids.erase(std::unique(files.stop_ids.begin(), files.stop_ids.end()), files.stop_ids.end());
  return files;
}

bool is_draft_folder(const std::string& path) {
  const ModelFolder folder = open_model_folder(path);
  const Json json = read_json_file(folder.config);
  const JsonObject config(json, folder.config);
  const bool block = config.has("block_size") || config.has("dflash_config");
  return block || config.has("target_layer_ids") || config.has("mask_token_id");
}

DraftFiles open_draft(const std::string& path) {
  open_model_folder(path);  // its errors say what a draft's folder must hold
  return {.path = path, .config = read_draft_config(path), .tensors = open_safetensors(path)};
}

}  // namespace drafthorse
