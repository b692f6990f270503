#pragma once

#include <string>
#include <string_view>

namespace drafthorse {

/// The regexes of tokenizer.json are written for Oniguruma (Ruby syntax); we run PCRE2. Nearly everything published
/// means the same in both and passes unchanged. What does not is either spelled so that PCRE2 agrees, or refused:
///   \s \S      become White_Space (PCRE2's own \s also takes U+180E)
///   \w \W      become Alphabetic, M, Nd, Pc (PCRE2's own \w also takes No and Nl, and not the marks)
///   refused    class intersection `&&` and a class inside a class, \h \H \b \B \v, \W inside a class, `{,n}` and
///   `{n,m}+`,
///              inline flags m, s and x, named calls, verbs and callouts: PCRE2 would take them and match something
///              else
/// `^` and `$` match at every line in Ruby syntax: compile with multi-line on.
/// Throws Error starting with `where` for a refused construct, naming it.
std::string to_pcre2_syntax(std::string_view pattern, const std::string& where);

}  // namespace drafthorse
