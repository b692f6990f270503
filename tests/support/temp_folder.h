#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace drafthorse {

/// A folder of its own for one test, removed with everything in it at the end of its life.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "drafthorse_test_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot create " + pattern);
    path_ = pattern;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Full path of `name` inside the folder.
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Creates or replaces a file and returns its full path.
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream file(*this / name, std::ios::binary);
    file << bytes;
    return *this / name;
  }

 private:
  std::string path_;
};

}  // namespace drafthorse
