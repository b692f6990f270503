#include "cache/kv_cache.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace drafthorse {
namespace {

// Large enough that a slab is mapped, not malloced, and that growth is rare; untouched pages of a slab cost nothing.
constexpr std::size_t kSlabBytes = std::size_t{8} << 20;

std::int64_t pages_for(std::int64_t positions, std::int64_t page_positions) {
  return (positions + page_positions - 1) / page_positions;
}

}  // namespace

std::byte* PagePool::take() {
  if (free_.empty()) {
    const std::size_t page = layout_.page_bytes();
    const std::size_t count = std::max<std::size_t>(1, kSlabBytes / page);
    slabs_.emplace_back(count * page);
    free_.reserve(free_.size() + count * slabs_.size());
    for (std::size_t i = count; i-- > 0;) free_.push_back(slabs_.back().data() + i * page);
  }
  std::byte* page = free_.back();
  free_.pop_back();
  return page;
}

void PagePool::give_back(std::byte* page) { free_.push_back(page); }

std::size_t PagePool::bytes() const {
  std::size_t total = 0;
  for (const AlignedBuffer& slab : slabs_) total += slab.size();
  return total;
}

KvCache::KvCache(PagePool& pool, std::int64_t capacity) : pool_(pool), capacity_(capacity) {
  DRAFTHORSE_CHECK(capacity >= 1, "capacity " << capacity);
  pages_.reserve(static_cast<std::size_t>(pages_for(capacity, layout().page_positions)));
}

KvCache::~KvCache() {
  for (std::byte* page : pages_) pool_.give_back(page);
}

void KvCache::begin(std::int64_t rows) {
  DRAFTHORSE_CHECK(base_ < 0, "a transaction is open already");
  DRAFTHORSE_CHECK(rows >= 0, "rows " << rows);
  base_ = offset_;
}

void KvCache::commit(std::int64_t keep) {
  DRAFTHORSE_CHECK(base_ >= 0, "no transaction is open");
  DRAFTHORSE_CHECK(keep >= 0 && base_ + keep <= offset_,
                   "keep " << keep << " of " << offset_ - base_ << " rows written");
  offset_ = base_ + keep;
  base_ = -1;
}

std::size_t KvCache::bytes() const { return pages_.size() * layout().page_bytes(); }

std::byte* const* KvCache::reserve(std::int64_t rows) {
  DRAFTHORSE_CHECK(rows >= 0 && offset_ + rows <= capacity_,
                   "rows [" << offset_ << ", " << offset_ + rows << ") of a cache for " << capacity_ << " positions");
  const auto needed = static_cast<std::size_t>(pages_for(offset_ + rows, layout().page_positions));
  while (pages_.size() < needed) pages_.push_back(pool_.take());
  return pages_.data();
}

void KvCache::advance(std::int64_t rows) {
  DRAFTHORSE_CHECK(rows >= 0 && offset_ + rows <= static_cast<std::int64_t>(pages_.size()) * layout().page_positions,
                   "advance by " << rows << " past the reserved pages");
  offset_ += rows;
}

std::byte* const* KvOverlay::cover(const KvCache& cache, std::int64_t rows) {
  const KvLayout& layout = cache.layout();
  page_positions_ = layout.page_positions;
  const std::int64_t offset = cache.offset();
  const std::int64_t full = offset / page_positions_;  // pages the block cannot touch
  const std::int64_t total = pages_for(offset + rows, page_positions_);
  const std::size_t page = layout.page_bytes();
  if (scratch_.size() < static_cast<std::size_t>(total - full) * page) {
    scratch_ = AlignedBuffer(static_cast<std::size_t>(total - full + 1) *
                             page);  // one more: the block may start later in its page
  }
  pages_.resize(static_cast<std::size_t>(total));
  const KvPages held = cache.pages();
  for (std::int64_t i = 0; i < full; ++i) pages_[static_cast<std::size_t>(i)] = const_cast<std::byte*>(held.pages[i]);
  for (std::int64_t i = full; i < total; ++i) {
    pages_[static_cast<std::size_t>(i)] = scratch_.data() + static_cast<std::size_t>(i - full) * page;
  }
  const std::int64_t used = offset - full * page_positions_;
  if (used > 0) {
    const auto tiles = static_cast<std::size_t>((used + kKvTile - 1) / kKvTile);
    std::memcpy(pages_[static_cast<std::size_t>(full)], held.pages[full], tiles * layout.tile_bytes());
  }
  return pages_.data();
}

}  // namespace drafthorse
