#pragma once

#include <string>

namespace drafthorse {

/// Path of the reference data beside the project (golden values, tokenizer files, models), or "" when it is not there.
/// Tests that need it skip themselves by name:
///   DRAFTHORSE_NEEDS_SHARED(path, "golden/targets/qwen3");
std::string shared_path(const std::string& relative);

/// Path inside the project's own tree ("models/demo/target"). Always there.
std::string project_path(const std::string& relative);

}  // namespace drafthorse

/// Declares std::string `name` = shared_path(relative), or skips the test saying what is missing.
#define DRAFTHORSE_NEEDS_SHARED(name, relative)                 \
  const std::string name = ::drafthorse::shared_path(relative); \
  if (name.empty()) GTEST_SKIP() << "reference data absent: shared/" << (relative)
