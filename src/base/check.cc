#include "base/check.h"

namespace drafthorse::internal {

void check_failed(const char* file, int line, const char* condition, const std::string& detail) {
  std::string message = std::string(file) + ":" + std::to_string(line) + ": CHECK(" + condition + ") failed";
  if (!detail.empty()) message += ": " + detail;
  throw InternalError(message);
}

}  // namespace drafthorse::internal
