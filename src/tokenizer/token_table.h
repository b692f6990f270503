#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drafthorse {

/// Tokens by content and by id: one block of text, one open-addressing hash table. Made for some 300 000 tokens read in
/// file order, where a std::unordered_map of strings would take most of the loading time.
class TokenTable {
 public:
  /// Ids are below this (exclusive). Bounds the memory of a table with one huge id.
  static constexpr std::int64_t kIdLimit = std::int64_t{1} << 24;

  enum class Added { kYes, kContentKnown, kIdKnown };
  /// Adds one token; refuses (and changes nothing) when the content or the id is already there. 0 <= id < kIdLimit.
  Added add(std::string_view content, std::int32_t id);

  /// The id of a token's exact content.
  std::optional<std::int32_t> find(std::string_view content) const;
  bool has(std::int32_t id) const;
  /// The content of an id that has() one. Valid until the next add().
  std::string_view content(std::int32_t id) const;

  /// Number of tokens.
  std::size_t size() const { return count_; }
  /// Largest id + 1; ids below it may be unused.
  std::int32_t id_end() const { return static_cast<std::int32_t>(spans_.size()); }

 private:
  struct Span {
    std::uint32_t offset = 0;
    std::uint32_t length = kUnused;
  };
  static constexpr std::uint32_t kUnused = UINT32_MAX;
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t id = -1;  // -1: empty
  };

  std::size_t slot_of(std::string_view content, std::uint32_t hash) const;
  void grow();

  std::string text_;
  std::vector<Span> spans_;  // by id
  std::vector<Slot> slots_;  // power of two
  std::size_t count_ = 0;
};

}  // namespace drafthorse
