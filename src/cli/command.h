#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace drafthorse {

/// Exit codes of the program.
enum ExitCode : int {
  kExitOk = 0,
  kExitDifferent = 1,     ///< verify: what must be equal is not
  kExitBadInput = 2,      ///< flags, files, prompts
  kExitInternal = 3,      ///< a broken promise of our own
  kExitInterrupted = 130  ///< Ctrl-C
};

/// One command of the program: its flags are registered, its body runs after they were parsed and returns the exit
/// code.
struct Command {
  CLI::App* flags;
  std::function<int()> body;
};

Command add_run_command(CLI::App& program);
Command add_verify_command(CLI::App& program);
Command add_score_command(CLI::App& program);
Command add_inspect_command(CLI::App& program);
Command add_quantize_command(CLI::App& program);
Command add_tokenize_command(CLI::App& program);
Command add_bench_command(CLI::App& program);

/// The commit this binary was built from; "unknown" outside a repository.
const char* build_commit();

}  // namespace drafthorse
