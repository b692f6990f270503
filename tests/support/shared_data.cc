#include "support/shared_data.h"

#include <filesystem>

namespace drafthorse {

std::string shared_path(const std::string& relative) {
  const std::filesystem::path path = std::filesystem::path(DRAFTHORSE_SOURCE_DIR) / ".." / "shared" / relative;
  return std::filesystem::exists(path) ? path.lexically_normal().string() : "";
}

std::string project_path(const std::string& relative) { return std::string(DRAFTHORSE_SOURCE_DIR) + "/" + relative; }

}  // namespace drafthorse
