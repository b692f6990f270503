#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace drafthorse {

/// Merge rules as a file lists them: the two parts of each, one behind the other in one block of text.
class MergeList {
 public:
  void add(std::string_view left, std::string_view right);
  std::size_t size() const { return entries_.size(); }
  std::string_view left(std::size_t rank) const;
  std::string_view right(std::size_t rank) const;
  std::string_view joined(std::size_t rank) const;  ///< left + right

 private:
  struct Entry {
    std::size_t offset;
    std::uint32_t left;
    std::uint32_t right;
  };
  std::string text_;
  std::vector<Entry> entries_;
};

}  // namespace drafthorse
