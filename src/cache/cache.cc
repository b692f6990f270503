#include "cache/cache.h"

#include "base/check.h"

namespace drafthorse {

std::int64_t CacheSet::offset() const {
  if (layers_.empty()) return 0;
  const std::int64_t first = layers_.front()->offset();
  for (const auto& layer : layers_) {
    DRAFTHORSE_CHECK(layer->offset() == first, "layer caches at " << layer->offset() << " and " << first);
  }
  return first;
}

std::size_t CacheSet::bytes() const {
  std::size_t total = 0;
  for (const auto& layer : layers_) total += layer->bytes();
  return total;
}

CacheTransaction::CacheTransaction(const CacheSet& caches, std::int64_t rows) : caches_(&caches) {
  for (std::int64_t i = 0; i < caches.layers(); ++i) caches.layer(i).begin(rows);
}

CacheTransaction::~CacheTransaction() {
  if (open_) commit(0);
}

void CacheTransaction::commit(std::int64_t keep) {
  DRAFTHORSE_CHECK(open_, "a transaction ends once");
  open_ = false;
  for (std::int64_t i = 0; i < caches_->layers(); ++i) caches_->layer(i).commit(keep);
}

}  // namespace drafthorse
