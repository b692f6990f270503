#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace drafthorse {
namespace {

/// An open descriptor with the size of its regular file.
struct OpenFile {
  int fd = -1;
  std::size_t size = 0;
  explicit OpenFile(const std::string& path) {
    // Without O_NONBLOCK a named pipe would be waited for, perhaps for ever.
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) throw Error(path + ": cannot open: " + std::strerror(errno));
    struct stat info {};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
      ::close(fd);
      throw Error(path + ": not a regular file");
    }
    size = static_cast<std::size_t>(info.st_size);
  }
  ~OpenFile() { ::close(fd); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
};

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const OpenFile file(path);
  size_ = file.size;
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED)
    throw Error(path + ": cannot map " + std::to_string(size_) + " bytes: " + std::strerror(errno));
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::will_need(std::span<const std::byte> range) const {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(range.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(range.data() + range.size());
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);
}

void MappedFile::release(std::span<const std::byte> range) const {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(range.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(range.data() + range.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

bool is_listed(const std::string& path) {
  std::error_code error;
  return std::filesystem::symlink_status(path, error).type() != std::filesystem::file_type::not_found;
}

std::string read_text_file(const std::string& path, std::size_t limit) {
  const OpenFile file(path);
  if (file.size > limit) {
    throw Error(path + ": " + std::to_string(file.size) + " bytes, more than the limit of " + std::to_string(limit));
  }
  std::string text(file.size, '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(file.fd, text.data() + done, text.size() - done);
    if (got < 0) throw Error(path + ": cannot read: " + std::strerror(errno));
    if (got == 0)
      throw Error(path + ": ended after " + std::to_string(done) + " of " + std::to_string(text.size()) + " bytes");
    done += static_cast<std::size_t>(got);
  }
  return text;
}

}  // namespace drafthorse
