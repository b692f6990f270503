#pragma once

#include <cstdint>
#include <vector>

namespace drafthorse {

/// One merge rule of a BPE vocabulary: what a pair of neighbours becomes, and how early.
struct Merge {
  std::uint32_t rank = kNone;  ///< place in the file; lower merges first
  std::int32_t result = -1;    ///< id of the joined token
  static constexpr std::uint32_t kNone = UINT32_MAX;
  explicit operator bool() const { return rank != kNone; }
};

/// (left id, right id) -> Merge. Open addressing with 16-byte entries: a lookup, nearly always of a pair that is
/// absent, is one cache line.
class MergeTable {
 public:
  /// Room for `count` merges without rehashing.
  void reserve(std::size_t count);
  /// A pair that is already there takes the new rank and result.
  void set(std::int32_t left, std::int32_t right, Merge merge);
  /// A Merge that tests false when the pair does not merge.
  Merge find(std::int32_t left, std::int32_t right) const {
    if (entries_.empty()) return {};
    const std::uint64_t key = key_of(left, right);
    for (std::size_t slot = slot_of(key);; slot = (slot + 1) & (entries_.size() - 1)) {
      const Entry& entry = entries_[slot];
      if (entry.key == key) return entry.merge;
      if (entry.key == kEmpty) return {};
    }
  }
  std::size_t size() const { return count_; }
  /// Calls visit(merge) for every merge, in no order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Entry& entry : entries_) {
      if (entry.key != kEmpty) visit(entry.merge);
    }
  }

 private:
  struct Entry {
    std::uint64_t key = kEmpty;
    Merge merge;
  };
  static constexpr std::uint64_t kEmpty = UINT64_MAX;  // ids are never negative, so no pair has this key

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t slot_of(std::uint64_t key) const {
    std::uint64_t mixed = key * 0x9E3779B97F4A7C15U;
    mixed ^= mixed >> 32;
    return (mixed * 0x9E3779B97F4A7C15U >> 20) & (entries_.size() - 1);
  }

  std::vector<Entry> entries_;  // power of two, at most half full
  std::size_t count_ = 0;
};

}  // namespace drafthorse
