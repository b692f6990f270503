#include "support/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <stdexcept>

namespace drafthorse {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    read_end = ends[0];
    write_end = ends[1];
  }
  ~Pipe() {
    close_end(read_end);
    close_end(write_end);
  }
  static void close_end(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
};

}  // namespace

ProgramResult run_program(const std::vector<std::string>& command, const std::string& input, int seconds) {
  Pipe in;
  Pipe out;
  Pipe err;
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(in.read_end, 0);
    ::dup2(out.write_end, 1);
    ::dup2(err.write_end, 2);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  Pipe::close_end(in.read_end);
  Pipe::close_end(out.write_end);
  Pipe::close_end(err.write_end);
  ::signal(SIGPIPE, SIG_IGN);

  ProgramResult result;
  std::size_t sent = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (out.read_end >= 0 || err.read_end >= 0) {
    if (in.write_end >= 0 && sent == input.size()) Pipe::close_end(in.write_end);
    std::array<pollfd, 3> waits = {pollfd{out.read_end, POLLIN, 0}, pollfd{err.read_end, POLLIN, 0},
                                   pollfd{in.write_end, POLLOUT, 0}};
    ::poll(waits.data(), waits.size(), 200);
    if (std::chrono::steady_clock::now() > deadline) {
      ::kill(child, SIGKILL);
      break;
    }
    const auto drain = [](int& end, std::string& text) {
      std::array<char, 65536> buffer;
      const ssize_t got = ::read(end, buffer.data(), buffer.size());
      if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
      if (got == 0) Pipe::close_end(end);
    };
    if (waits[0].revents != 0) drain(out.read_end, result.out);
    if (waits[1].revents != 0) drain(err.read_end, result.err);
    if (waits[2].revents != 0) {
      const ssize_t put = ::write(in.write_end, input.data() + sent, input.size() - sent);
      if (put > 0) sent += static_cast<std::size_t>(put);
      if (put < 0) Pipe::close_end(in.write_end);  // the program does not read its input
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace drafthorse
