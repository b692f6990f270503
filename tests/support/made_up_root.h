#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace drafthorse {

/// A folder that stands for "/" with the kernel files a test writes into it; removed with the object.
class MadeUpRoot {
 public:
  MadeUpRoot();
  ~MadeUpRoot() { std::filesystem::remove_all(path_); }
  MadeUpRoot(const MadeUpRoot&) = delete;
  MadeUpRoot& operator=(const MadeUpRoot&) = delete;

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = path_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace drafthorse
