#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace drafthorse {

/// What an outside cause was. The command line maps every kind but kCancelled to exit code 2.
enum class ErrorKind : std::uint8_t {
  kInput,      ///< a file, config, flag, prompt or body that is wrong
  kMemory,     ///< the machine cannot hold what was asked for
  kCancelled,  ///< the caller gave up
};

/// The one exception for anything the outside can cause. The message is one line that names file, key, value and what
/// to do.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ErrorKind kind = ErrorKind::kInput)
      : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

/// A broken promise of our own (a failed DRAFTHORSE_CHECK). Ends the request, never the process.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace drafthorse
