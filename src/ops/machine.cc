#include "ops/machine.h"

#include "base/cpu_features.h"

namespace drafthorse {

Machine::Machine(int threads, std::string_view isa, bool pin)
    : pool_(std::make_unique<ThreadPool>(threads > 0 ? threads : usable_cpus(), pin)),
      exec_{*pool_, kernel_table(isa)} {}

}  // namespace drafthorse
