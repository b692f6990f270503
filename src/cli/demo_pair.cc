#include "cli/demo_pair.h"

#include <filesystem>

#include "base/error.h"

namespace drafthorse {

DemoPair find_demo_pair() {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path(); !folder.empty();
       folder = folder.parent_path()) {
    const fs::path demo = folder / "models" / "demo";
    if (fs::exists(demo / "target" / "config.json", error)) {
      return {(demo / "target").string(), (demo / "dflash").string()};
    }
    if (folder == folder.root_path()) break;
  }
  throw Error("no MODEL was given, and there is no models/demo in the folders above this program: name a model folder");
}

}  // namespace drafthorse
