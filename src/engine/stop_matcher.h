#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace drafthorse {

/// Ends a text at the first stop string in it, however the text is cut into pieces. Text that may still become a stop
/// string is held back, and released when it turns out harmless. Works on bytes; a push costs O(text * stop strings),
/// whatever is held.
class StopMatcher {
 public:
  /// `stops`: none empty (the caller refuses those); an empty list never stops.
  explicit StopMatcher(std::vector<std::string> stops);

  /// Takes the next piece and appends to `out` what is certain not to belong to a stop string. The match that ends
  /// first wins; of several that end together, the longest. Nothing of the match, and nothing after it, is ever
  /// released. Once stopped, text is ignored.
  void push(std::string_view text, std::string& out);
  /// The text is over: appends what is still held. Only once, at the end.
  void finish(std::string& out);

  bool stopped() const { return stopped_; }

 private:
  /// One stop string and the automaton of Knuth, Morris and Pratt ("Fast pattern matching in strings", 1977).
  struct Stop {
    std::string text;
    std::vector<std::size_t> border;  // [i]: length of the longest proper prefix of text that ends text[0, i]
    std::size_t matched = 0;          // bytes of `text` that the input so far ends with
  };

  static void advance(Stop& stop, char byte);

  std::vector<Stop> stops_;
  std::size_t holder_ = 0;  // index of the stop with the most matched bytes: those are the bytes held back
  bool stopped_ = false;
};

}  // namespace drafthorse
