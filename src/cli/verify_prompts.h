#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/model_files.h"

namespace drafthorse {

/// Prompts of a file of JSON lines, each an object with `prompt` (text) or `ids`. Blank lines are skipped. Throws Error
/// naming file and line, also for one that leaves no room in the `context`.
std::vector<std::vector<std::int32_t>> read_prompts(const std::string& path, const TargetFiles& files,
                                                    std::int64_t context);

/// Sixteen prompts unlike each other: code, prose, tables, other scripts, one token, a text longer than a page of the
/// cache. For a model without a tokenizer as many runs of ids. Each is cut to half of the `context`.
std::vector<std::vector<std::int32_t>> built_in_prompts(const TargetFiles& files, std::int64_t context);

}  // namespace drafthorse
