#include "support/test_machine.h"

#include "ops/machine.h"

namespace drafthorse {

ExecContext& test_exec() {
  static Machine machine(1);
  return machine.exec();
}

}  // namespace drafthorse
