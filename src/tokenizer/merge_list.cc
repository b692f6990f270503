#include "tokenizer/merge_list.h"

namespace drafthorse {

void MergeList::add(std::string_view left, std::string_view right) {
  entries_.push_back({text_.size(), static_cast<std::uint32_t>(left.size()), static_cast<std::uint32_t>(right.size())});
  text_ += left;
  text_ += right;
}

std::string_view MergeList::left(std::size_t rank) const {
  return std::string_view(text_).substr(entries_[rank].offset, entries_[rank].left);
}

std::string_view MergeList::right(std::size_t rank) const {
  return std::string_view(text_).substr(entries_[rank].offset + entries_[rank].left, entries_[rank].right);
}

std::string_view MergeList::joined(std::size_t rank) const {
  return std::string_view(text_).substr(entries_[rank].offset, entries_[rank].left + entries_[rank].right);
}

}  // namespace drafthorse
