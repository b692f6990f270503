#include "tokenizer/merge_table.h"

#include <bit>

#include "base/check.h"

namespace drafthorse {

void MergeTable::reserve(std::size_t count) {
  const std::size_t wanted = std::bit_ceil(count * 2 + 2);
  if (wanted <= entries_.size()) return;
  std::vector<Entry> old(wanted);
  old.swap(entries_);
  count_ = 0;
  for (const Entry& entry : old) {
    if (entry.key == kEmpty) continue;
    set(static_cast<std::int32_t>(entry.key >> 32), static_cast<std::int32_t>(entry.key & UINT32_MAX), entry.merge);
  }
}

void MergeTable::set(std::int32_t left, std::int32_t right, Merge merge) {
  DRAFTHORSE_CHECK(left >= 0 && right >= 0 && merge);
  reserve(count_ + 1);
  const std::uint64_t key = key_of(left, right);
  std::size_t slot = slot_of(key);
  while (entries_[slot].key != kEmpty && entries_[slot].key != key) slot = (slot + 1) & (entries_.size() - 1);
  count_ += entries_[slot].key == kEmpty ? 1 : 0;
  entries_[slot] = {key, merge};
}

}  // namespace drafthorse
