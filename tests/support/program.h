#pragma once

#include <string>
#include <vector>

namespace drafthorse {

/// What a finished program left.
struct ProgramResult {
  int exit_code = -1;  ///< 128 + signal when it was killed
  std::string out;
  std::string err;
};

/// Runs `command` (no shell) with `input` on its standard input and waits for it; killed after `seconds`.
ProgramResult run_program(const std::vector<std::string>& command, const std::string& input = "", int seconds = 60);

}  // namespace drafthorse
