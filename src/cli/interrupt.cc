#include "cli/interrupt.h"

#include <csignal>

namespace drafthorse {
namespace {

volatile std::sig_atomic_t interrupt_seen = 0;  // a signal has nowhere else to write

extern "C" void note_interrupt(int) {
  interrupt_seen = 1;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

void catch_interrupt() { std::signal(SIGINT, note_interrupt); }

bool interrupted() { return interrupt_seen != 0; }

}  // namespace drafthorse
