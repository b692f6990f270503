#include "cache/kv_cache.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"

namespace drafthorse {
namespace {

KvLayout layout() { return {ElementType::kF32, 2, 4, 32}; }

/// Marks position p with `value` in head 0's key tile.
void mark(std::byte* const* pages, std::int64_t p, float value) {
  const KvLayout l = layout();
  auto* keys = reinterpret_cast<float*>(pages[p / l.page_positions] + l.head_tile_offset(p, 0));
  keys[l.key_element(p, 0)] = value;
}

float marked(const KvPages& pages, std::int64_t p) {
  const KvLayout l = layout();
  const auto* keys = reinterpret_cast<const float*>(pages.pages[p / pages.page_positions] + l.head_tile_offset(p, 0));
  return keys[l.key_element(p, 0)];
}

void write(KvCache& cache, std::int64_t rows, float first) {
  std::byte* const* pages = cache.reserve(rows);
  for (std::int64_t i = 0; i < rows; ++i) mark(pages, cache.offset() + i, first + static_cast<float>(i));
  cache.advance(rows);
}

TEST(KvCache, PagesKeepTheirRowsWhileTheCacheGrows) {
  PagePool pool(layout());
  KvCache cache(pool, 1000);
  for (int i = 0; i < 200; ++i) write(cache, 1, static_cast<float>(i));
  EXPECT_EQ(cache.offset(), 200);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(marked(cache.pages(), i), static_cast<float>(i));
  EXPECT_EQ(cache.bytes(), 7 * layout().page_bytes());
}

TEST(KvCache, ATransactionKeepsWhatWasAcceptedForEveryCount) {
  for (std::int64_t keep = 0; keep <= 5; ++keep) {
    PagePool pool(layout());
    std::vector<std::unique_ptr<Cache>> layers;
    layers.push_back(std::make_unique<KvCache>(pool, 100));
    layers.push_back(std::make_unique<KvCache>(pool, 100));
    const CacheSet caches(std::move(layers));
    for (int l = 0; l < 2; ++l) write(static_cast<KvCache&>(caches.layer(l)), 30, 0);
    CacheTransaction transaction(caches, 5);
    for (int l = 0; l < 2; ++l) write(static_cast<KvCache&>(caches.layer(l)), 5, 100);
    transaction.commit(keep);
    EXPECT_EQ(caches.offset(), 30 + keep);
    for (std::int64_t i = 0; i < keep; ++i) {
      EXPECT_EQ(marked(static_cast<KvCache&>(caches.layer(1)).pages(), 30 + i), 100 + static_cast<float>(i));
    }
  }
}

TEST(KvCache, LeavingAScopeUndoesTheGuess) {
  PagePool pool(layout());
  std::vector<std::unique_ptr<Cache>> layers;
  layers.push_back(std::make_unique<KvCache>(pool, 100));
  const CacheSet caches(std::move(layers));
  auto& cache = static_cast<KvCache&>(caches.layer(0));
  write(cache, 3, 0);
  {
    const CacheTransaction transaction(caches, 4);
    write(cache, 4, 50);
  }
  EXPECT_EQ(cache.offset(), 3);
  write(cache, 1, 7);
  EXPECT_EQ(marked(cache.pages(), 3), 7);
}

TEST(KvCache, MisuseIsAnInternalError) {
  PagePool pool(layout());
  KvCache cache(pool, 40);
  EXPECT_THROW(cache.reserve(41), InternalError);
  EXPECT_THROW(cache.advance(1), InternalError);
  EXPECT_THROW(cache.commit(0), InternalError);
  cache.begin(2);
  EXPECT_THROW(cache.begin(2), InternalError);
  EXPECT_THROW(cache.commit(1), InternalError);
}

TEST(PagePool, GivesPagesBackForTheNextRequest) {
  PagePool pool(layout());
  {
    KvCache first(pool, 1000);
    write(first, 1000, 0);
  }
  const std::size_t bytes = pool.bytes();
  for (int request = 0; request < 20; ++request) {
    KvCache next(pool, 1000);
    write(next, 1000, 0);
  }
  EXPECT_EQ(pool.bytes(), bytes);
}

TEST(KvOverlay, ABlockNeverEntersTheCache) {
  PagePool pool(layout());
  for (const std::int64_t held : {0, 1, 31, 32, 33, 63, 64, 100}) {
    KvCache cache(pool, 300);
    write(cache, held, 0);
    KvOverlay overlay;
    for (int round = 0; round < 2; ++round) {
      std::byte* const* pages = overlay.cover(cache, 40);
      for (std::int64_t i = 0; i < 40; ++i) mark(pages, held + i, 1000 + static_cast<float>(i));
      for (std::int64_t i = 0; i < held; ++i) ASSERT_EQ(marked(overlay.pages(), i), static_cast<float>(i));
      for (std::int64_t i = 0; i < 40; ++i) ASSERT_EQ(marked(overlay.pages(), held + i), 1000 + static_cast<float>(i));
    }
    EXPECT_EQ(cache.offset(), held);
    write(cache, 1, 5);
    EXPECT_EQ(marked(cache.pages(), held), 5);
    for (std::int64_t i = 0; i < held; ++i) ASSERT_EQ(marked(cache.pages(), i), static_cast<float>(i));
  }
}

TEST(CacheSet, LayersThatDisagreeAreAnInternalError) {
  PagePool pool(layout());
  std::vector<std::unique_ptr<Cache>> layers;
  layers.push_back(std::make_unique<KvCache>(pool, 100));
  layers.push_back(std::make_unique<KvCache>(pool, 100));
  const CacheSet caches(std::move(layers));
  write(static_cast<KvCache&>(caches.layer(0)), 1, 0);
  EXPECT_THROW(caches.offset(), InternalError);
}

}  // namespace
}  // namespace drafthorse
