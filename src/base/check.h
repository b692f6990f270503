#pragma once

#include <sstream>
#include <string>

#include "base/error.h"

namespace drafthorse::internal {

/// Throws InternalError("file:line: CHECK(condition) failed: detail").
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& detail);

}  // namespace drafthorse::internal

/// Checks an invariant of our own, in every build. The optional second argument is streamed into the message:
///   DRAFTHORSE_CHECK(start >= 0, "context gap: run starts at " << p << ", frontier is " << f);
#define DRAFTHORSE_CHECK(condition, ...)                                                             \
  do {                                                                                               \
    if (!(condition)) [[unlikely]] {                                                                 \
      std::ostringstream drafthorse_detail;                                                          \
      __VA_OPT__(drafthorse_detail << __VA_ARGS__;)                                                  \
      ::drafthorse::internal::check_failed(__FILE__, __LINE__, #condition, drafthorse_detail.str()); \
    }                                                                                                \
  } while (false)
