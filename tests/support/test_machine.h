#pragma once

#include "ops/exec_context.h"

namespace drafthorse {

/// One thread and this CPU's best kernels, for tests that need a machine but do not test one.
ExecContext& test_exec();

}  // namespace drafthorse
