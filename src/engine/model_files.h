#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/draft_config.h"
#include "checkpoint/folder.h"
#include "checkpoint/generation_config.h"
#include "checkpoint/target_config.h"
#include "checkpoint/tensor_source.h"
#include "tokenizer/tokenizer.h"

namespace drafthorse {

/// A target's folder, opened and checked; nothing large has been read.
struct TargetFiles {
  ModelFolder folder;
  TargetConfig config;
  GenerationConfig generation;
  std::unique_ptr<TensorSource> tensors;
  std::unique_ptr<Tokenizer> tokenizer;  ///< null when the folder has none: prompts are ids then
  /// Every id that config.json, generation_config.json or the tokenizer declares as an end: ascending, without
  /// repetition.
  std::vector<std::int32_t> stop_ids;

  const std::string& path() const { return folder.path; }
  TargetFacts facts() const;
};

/// A draft's folder, opened and checked by itself.
struct DraftFiles {
  std::string path;
  DraftConfig config;
  std::unique_ptr<TensorSource> tensors;
};

/// Whether the config in `path` says that it is a draft: it names what only drafts have. Throws as open_draft.
bool is_draft_folder(const std::string& path);
/// Throws Error naming file, key and value for anything that is missing or wrong.
TargetFiles open_target(const std::string& path);
DraftFiles open_draft(const std::string& path);

}  // namespace drafthorse
