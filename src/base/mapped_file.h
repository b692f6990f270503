#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace drafthorse {

/// A whole file mapped read-only. Movable; unmaps in its destructor. Views into bytes() must not outlive it.
class MappedFile {
 public:
  /// Throws Error naming the path when the file cannot be opened, is not a regular file, or cannot be mapped.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  /// Empty for an empty file.
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  /// Tells the kernel that `range` (inside bytes()) will be read soon and often.
  void will_need(std::span<const std::byte> range) const;
  /// Tells the kernel that `range` (inside bytes()) was read for the last time: its clean pages may leave memory.
  void release(std::span<const std::byte> range) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The whole file as text. Throws Error naming the path, also when it is larger than `limit` bytes.
std::string read_text_file(const std::string& path, std::size_t limit = std::size_t{256} << 20);

/// Whether there is anything of that name. A link that leads nowhere counts, and so does what cannot be looked at:
/// opening it says what is wrong, where calling it absent would hide it.
bool is_listed(const std::string& path);

}  // namespace drafthorse
