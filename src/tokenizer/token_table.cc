#include "tokenizer/token_table.h"

#include <cstring>

#include "base/check.h"

namespace drafthorse {
namespace {

/// Multiply-xorshift over eight bytes at a time. Collisions cost time only; a table holds at most kIdLimit tokens.
std::uint32_t hash_of(std::string_view text) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15U;
  std::uint64_t state = text.size() * kFactor;
  while (text.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data(), 8);
    state = (state ^ word) * kFactor;
    state ^= state >> 29;
    text.remove_prefix(8);
  }
  std::uint64_t word = 0;
  std::memcpy(&word, text.data(), text.size());
  state = (state ^ word) * kFactor;
  state ^= state >> 32;
  return static_cast<std::uint32_t>(state * kFactor >> 32);
}

}  // namespace

TokenTable::Added TokenTable::add(std::string_view content, std::int32_t id) {
  DRAFTHORSE_CHECK(id >= 0 && id < kIdLimit, "token id " << id);
  if (slots_.size() < (count_ + 1) * 2) grow();
  const std::uint32_t hash = hash_of(content);
  const std::size_t slot = slot_of(content, hash);
  if (slots_[slot].id >= 0) return Added::kContentKnown;
  if (has(id)) return Added::kIdKnown;

  DRAFTHORSE_CHECK(text_.size() + content.size() < kUnused, "token text over 4 GiB");
  if (id >= id_end()) spans_.resize(static_cast<std::size_t>(id) + 1);
  spans_[static_cast<std::size_t>(id)] = {static_cast<std::uint32_t>(text_.size()),
                                          static_cast<std::uint32_t>(content.size())};
  text_ += content;
  slots_[slot] = {hash, id};
  ++count_;
  return Added::kYes;
}

std::optional<std::int32_t> TokenTable::find(std::string_view content) const {
  if (slots_.empty()) return std::nullopt;
  const Slot& slot = slots_[slot_of(content, hash_of(content))];
  return slot.id < 0 ? std::nullopt : std::optional(slot.id);
}

bool TokenTable::has(std::int32_t id) const {
  return id >= 0 && id < id_end() && spans_[static_cast<std::size_t>(id)].length != kUnused;
}

std::string_view TokenTable::content(std::int32_t id) const {
  DRAFTHORSE_CHECK(has(id), "token id " << id);
  const Span& span = spans_[static_cast<std::size_t>(id)];
  return std::string_view(text_).substr(span.offset, span.length);
}

std::size_t TokenTable::slot_of(std::string_view content, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot].id >= 0) {
    const Span& span = spans_[static_cast<std::size_t>(slots_[slot].id)];
    if (slots_[slot].hash == hash && std::string_view(text_).substr(span.offset, span.length) == content) return slot;
    slot = (slot + 1) & mask;
  }
  return slot;
}

void TokenTable::grow() {
  std::vector<Slot> old(slots_.empty() ? 1024 : slots_.size() * 2);
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& entry : old) {
    if (entry.id < 0) continue;
    std::size_t slot = entry.hash & mask;
    while (slots_[slot].id >= 0) slot = (slot + 1) & mask;
    slots_[slot] = entry;
  }
}

}  // namespace drafthorse
