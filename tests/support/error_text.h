#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "base/error.h"

namespace drafthorse {

/// The message of the Error that `call` must throw. Fails the test when nothing is thrown or the message is not one
/// line.
template <typename Call>
std::string error_text(Call call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text.find('\n'), std::string::npos) << "more than one line: " << text;
    return text;
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

/// Expects an Error whose message has every one of `parts`.
template <typename Call>
void expect_error(Call call, std::initializer_list<const char*> parts) {
  const std::string text = error_text(call);
  for (const char* part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

}  // namespace drafthorse
