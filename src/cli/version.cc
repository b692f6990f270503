#include "cli/command.h"

#ifndef DRAFTHORSE_COMMIT
#define DRAFTHORSE_COMMIT "unknown"
#endif

namespace drafthorse {

const char* build_commit() { return DRAFTHORSE_COMMIT; }

}  // namespace drafthorse
