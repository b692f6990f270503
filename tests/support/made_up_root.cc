#include "support/made_up_root.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace drafthorse {

MadeUpRoot::MadeUpRoot() {
  static int count = 0;
  path_ = testing::TempDir() + "drafthorse_root_" + std::to_string(getpid()) + "_" + std::to_string(count++);
}

}  // namespace drafthorse
