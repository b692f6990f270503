#pragma once

#include <string>

namespace drafthorse {

/// Folders of the demonstration pair that comes with the program.
struct DemoPair {
  std::string target;
  std::string draft;
};

/// Looks for models/demo beside the running executable and in every folder above it. Throws Error saying to name a
/// model when there is none.
DemoPair find_demo_pair();

}  // namespace drafthorse
