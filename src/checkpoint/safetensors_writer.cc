#include "checkpoint/safetensors_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"

namespace drafthorse {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kLengthBytes = 8;  // the header's length, little endian, before the header

std::string header_text(std::span<const TensorPlan> tensors, const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const TensorPlan& tensor : tensors) {
    DRAFTHORSE_CHECK(!header.contains(tensor.name), "tensor " << tensor.name << " twice");
    const std::uint64_t end = at + tensor.bytes();
    header[tensor.name] = {
        {"dtype", std::string(element_name(tensor.type))}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  const std::size_t past = (kLengthBytes + text.size()) % kAlignment;
  if (past != 0) text.append(kAlignment - past, ' ');  // the format allows trailing spaces for this
  return text;
}

}  // namespace

std::uint64_t TensorPlan::bytes() const {
  std::uint64_t elements = 1;
  for (const std::int64_t size : shape) elements *= static_cast<std::uint64_t>(size);
  return elements * element_bytes(type);
}

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::span<const TensorPlan> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : path_(path), temporary_(path + ".part") {
  const std::string header = header_text(tensors, metadata);
  std::byte length[kLengthBytes];
  for (std::size_t i = 0; i < kLengthBytes; ++i) length[i] = static_cast<std::byte>(header.size() >> (8 * i));
  file_bytes_ = kLengthBytes + header.size();
  for (const TensorPlan& tensor : tensors) file_bytes_ += tensor.bytes();
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) fail("cannot be made");
  try {
    write(length);
    write(std::as_bytes(std::span(header)));
  } catch (...) {
    ::close(file_);
    ::unlink(temporary_.c_str());
    throw;
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

void SafetensorsWriter::fail(const char* doing) const {
  throw Error(temporary_ + ": " + doing + ": " + std::strerror(errno));
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::write(file_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    written_ += static_cast<std::uint64_t>(got);
  }
}

void SafetensorsWriter::finish() {
  DRAFTHORSE_CHECK(written_ == file_bytes_, written_ << " bytes written of " << file_bytes_);
  if (::fsync(file_) != 0) fail("cannot be written");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be renamed");
  ::close(file_);
  file_ = -1;
}

}  // namespace drafthorse
