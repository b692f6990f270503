#include "tokenizer/regex.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "tokenizer/regex_dialect.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace drafthorse {
namespace {

constexpr std::size_t kPatternLimit = std::size_t{64} << 10;
// A text-length search such as `\s*[\r\n]+` over blanks takes a few steps per byte; backtracking that explodes takes
// more.
constexpr std::uint64_t kStepsBase = 1'000'000;
constexpr std::uint64_t kStepsPerByte = 64;
constexpr std::uint32_t kHeapLimitKib = 64 << 10;
constexpr std::size_t kJitStackStart = std::size_t{64} << 10;
constexpr std::size_t kJitStackLimit = std::size_t{64} << 20;

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

template <typename T, void (*kFree)(T*)>
struct Free {
  void operator()(T* pointer) const { kFree(pointer); }
};
template <typename T, void (*kFree)(T*)>
using Owned = std::unique_ptr<T, Free<T, kFree>>;

}  // namespace

struct Regex::Compiled {
  Owned<pcre2_code, pcre2_code_free> code;
  bool jit = false;
  std::string where;
};

Regex::Regex(std::string_view pattern, const std::string& where, bool verbatim)
    : compiled_(std::make_unique<Compiled>()) {
  const std::string text = verbatim ? std::string(pattern) : to_pcre2_syntax(pattern, where);
  const Owned<pcre2_compile_context, pcre2_compile_context_free> context(pcre2_compile_context_create(nullptr));
  if (!context) throw Error(where + ": no memory to compile the pattern", ErrorKind::kMemory);
  pcre2_set_max_pattern_length(context.get(), kPatternLimit);
  int error = 0;
  PCRE2_SIZE offset = 0;
  constexpr std::uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  compiled_->code.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), kOptions, &error, &offset, context.get()));
  if (!compiled_->code) {
    throw Error(where + " = " + brief(Json(text)) + ": the pattern does not compile: " + pcre2_message(error) +
                " at byte " + std::to_string(offset));
  }
  // Without executable memory the interpreter runs the same pattern, slower.
  compiled_->jit = pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE) == 0;
  compiled_->where = where;
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

struct RegexMatcher::State {
  const Regex::Compiled* regex;
  Owned<pcre2_match_data, pcre2_match_data_free> match;
  Owned<pcre2_match_context, pcre2_match_context_free> context;
  Owned<pcre2_jit_stack, pcre2_jit_stack_free>
      stack;  // made when a match first asks for more than the 32 KiB it is given
};

RegexMatcher::RegexMatcher(const Regex& regex) : state_(std::make_unique<State>()) {
  state_->regex = regex.compiled_.get();
  state_->match.reset(pcre2_match_data_create(1, nullptr));
  state_->context.reset(pcre2_match_context_create(nullptr));
  if (!state_->match || !state_->context)
    throw Error(state_->regex->where + ": no memory to match", ErrorKind::kMemory);
  pcre2_set_heap_limit(state_->context.get(), kHeapLimitKib);
}

RegexMatcher::~RegexMatcher() = default;
RegexMatcher::RegexMatcher(RegexMatcher&&) noexcept = default;
RegexMatcher& RegexMatcher::operator=(RegexMatcher&&) noexcept = default;

std::optional<ByteRange> RegexMatcher::search(std::string_view text, std::size_t from) {
  DRAFTHORSE_CHECK(from <= text.size());
  State& state = *state_;
  const std::uint64_t steps = kStepsBase + kStepsPerByte * text.size();
  pcre2_set_match_limit(state.context.get(), static_cast<std::uint32_t>(std::min<std::uint64_t>(steps, UINT32_MAX)));
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data() == nullptr ? "" : text.data());
  for (;;) {
    // Both skip the UTF-8 check (the caller's promise): pcre2_jit_match always does. Checking would make many matches
    // in one text quadratic.
    const int found = state.regex->jit ? pcre2_jit_match(state.regex->code.get(), subject, text.size(), from, 0,
                                                         state.match.get(), state.context.get())
                                       : pcre2_match(state.regex->code.get(), subject, text.size(), from,
                                                     PCRE2_NO_UTF_CHECK, state.match.get(), state.context.get());
    if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (found >= 0) {
      const PCRE2_SIZE* range = pcre2_get_ovector_pointer(state.match.get());
      DRAFTHORSE_CHECK(range[0] >= from && range[0] <= range[1] && range[1] <= text.size());
      return ByteRange{range[0], range[1]};
    }
    if (found == PCRE2_ERROR_JIT_STACKLIMIT && !state.stack) {
      state.stack.reset(pcre2_jit_stack_create(kJitStackStart, kJitStackLimit, nullptr));
      if (state.stack) {
        pcre2_jit_stack_assign(state.context.get(), nullptr, state.stack.get());
        continue;
      }
    }
    throw Error(state.regex->where + ": the pattern gave up on a text of " + std::to_string(text.size()) +
                " bytes: " + pcre2_message(found));
  }
}

}  // namespace drafthorse
