#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/cache.h"
#include "tensor/aligned_buffer.h"
#include "tensor/kv_layout.h"

namespace drafthorse {

/// Pages of one layout, shared by the sequences of a model: taken and given back, kept for the next request. Grows in
/// slabs; a page taken again holds whatever its last owner wrote.
class PagePool {
 public:
  explicit PagePool(const KvLayout& layout) : layout_(layout) {}
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  const KvLayout& layout() const { return layout_; }
  std::byte* take();
  void give_back(std::byte* page);
  /// Bytes of all slabs, used or free.
  std::size_t bytes() const;

 private:
  KvLayout layout_;
  std::vector<AlignedBuffer> slabs_;
  std::vector<std::byte*> free_;
};

/// Keys and values of one attention layer: append-only pages, rewound by moving the offset. Rows at or past the offset
/// may hold anything; attention never reads them.
class KvCache : public Cache {
 public:
  /// Holds up to `capacity` positions. `pool` outlives the cache.
  KvCache(PagePool& pool, std::int64_t capacity);
  ~KvCache() override;
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  std::int64_t offset() const override { return offset_; }
  void begin(std::int64_t rows) override;
  void commit(std::int64_t keep) override;
  std::size_t bytes() const override;

  const KvLayout& layout() const { return pool_.layout(); }
  std::int64_t capacity() const { return capacity_; }
  /// Makes pages for positions [0, offset() + rows) and returns all of them, in order. Fails a CHECK past the capacity.
  std::byte* const* reserve(std::int64_t rows);
  /// `rows` rows were written at [offset(), offset() + rows).
  void advance(std::int64_t rows);
  /// What attention reads.
  KvPages pages() const { return {pages_.data(), pool_.layout().page_positions}; }

 private:
  PagePool& pool_;
  std::int64_t capacity_;
  std::int64_t offset_ = 0;
  std::int64_t base_ = -1;  // offset at begin(), -1 outside a transaction
  std::vector<std::byte*> pages_;
};

/// A draft block's keys and values beside a cache: the cache's full pages are shared, the page the block starts in is
/// copied (only its used tiles), the rest is scratch. Nothing enters the cache. Reused from call to call without
/// allocating.
class KvOverlay {
 public:
  /// Prepares pages for positions [0, cache.offset() + rows) where those from cache.offset() on are writable scratch.
  /// Valid until the next call; the cache must not change meanwhile.
  std::byte* const* cover(const KvCache& cache, std::int64_t rows);
  KvPages pages() const { return {pages_.data(), page_positions_}; }

 private:
  std::int64_t page_positions_ = 0;
  AlignedBuffer scratch_;
  std::vector<std::byte*> pages_;
};

}  // namespace drafthorse
