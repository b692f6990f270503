#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/flags.h"

namespace drafthorse {
namespace {

int run_body(const Command& command) {
  try {
    return command.body();
  } catch (const Error& error) {
    print_note(error.what());
    return error.kind() == ErrorKind::kCancelled ? kExitInterrupted : kExitBadInput;
  } catch (const std::bad_alloc&) {
    print_note("out of memory: choose a smaller --context or --weights q8_0");
    return kExitBadInput;
  } catch (const std::exception& error) {
    print_note(std::string("internal error, please report: ") + error.what());
    return kExitInternal;
  }
}

int run_program(int argc, char** argv) {
  CLI::App program("drafthorse: large language models on CPUs, drafted and verified: faster, and exact.", "drafthorse");
  program.set_version_flag("--version", std::string("drafthorse 0.1.0, commit ") + build_commit());
  program.footer(
      "Without a model, `run`, `verify`, `score` and `bench` use the bundled demonstration pair.\n"
      "Every command explains itself: drafthorse run --help");
  const std::vector<Command> commands = {add_run_command(program),      add_verify_command(program),
                                         add_score_command(program),    add_inspect_command(program),
                                         add_quantize_command(program), add_tokenize_command(program),
                                         add_bench_command(program)};
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    return program.exit(request);
  } catch (const CLI::ParseError& error) {
    std::string name = "drafthorse";
    for (const Command& command : commands) {
      if (command.flags->parsed()) name += " " + command.flags->get_name();
    }
    print_note(std::string(error.what()) + "; see " + name + " --help");
    return kExitBadInput;
  }
  for (const Command& command : commands) {
    if (command.flags->parsed()) return run_body(command);
  }
  std::fputs(program.help().c_str(), stdout);
  return kExitOk;
}

/// What is still buffered must reach the reader. One who left on purpose (a closed pipe) is no error; a full disk is.
int finish_output(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  struct stat output {};
  if (::fstat(STDOUT_FILENO, &output) == 0 && (S_ISFIFO(output.st_mode) || S_ISSOCK(output.st_mode))) return code;
  print_note("standard output: cannot be written, what it got is not complete: is the disk full?");
  return code == kExitOk ? kExitBadInput : code;
}

}  // namespace
}  // namespace drafthorse

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is seen where text is written
  try {
    return drafthorse::finish_output(drafthorse::run_program(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "drafthorse: internal error, please report: %s\n", error.what());
    return drafthorse::kExitInternal;
  }
}
