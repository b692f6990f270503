#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace drafthorse {

/// One layer's state of one sequence. Positions [0, offset()) are in it.
///
/// Writes that may be undone happen between begin() and commit(); the layer's own network writes through the concrete
/// type (KvCache) and advances the offset.
class Cache {
 public:
  virtual ~Cache() = default;
  /// Tokens held.
  virtual std::int64_t offset() const = 0;
  /// A tentative write of up to `rows` rows follows. Must not be open already.
  virtual void begin(std::int64_t rows) = 0;
  /// Ends the tentative write: the first `keep` rows written since begin() stay, the others were never there. 0 <= keep
  /// <= rows written.
  virtual void commit(std::int64_t keep) = 0;
  /// Bytes held for this sequence.
  virtual std::size_t bytes() const = 0;
};

/// All layers' caches of one sequence for one model, moved together.
class CacheSet {
 public:
  CacheSet() = default;
  explicit CacheSet(std::vector<std::unique_ptr<Cache>> layers) : layers_(std::move(layers)) {}

  std::int64_t layers() const { return static_cast<std::int64_t>(layers_.size()); }
  Cache& layer(std::int64_t i) const { return *layers_[static_cast<std::size_t>(i)]; }
  /// The common offset; 0 for a model without caches. Fails a CHECK when layers disagree.
  std::int64_t offset() const;
  std::size_t bytes() const;

 private:
  std::vector<std::unique_ptr<Cache>> layers_;
};

/// A guess as a scope: whatever is written to the caches after the constructor is undone by the destructor, unless
/// commit() said how many rows are kept. Undoing is not a protocol of calls that must come first.
class CacheTransaction {
 public:
  CacheTransaction(const CacheSet& caches, std::int64_t rows);
  ~CacheTransaction();
  CacheTransaction(const CacheTransaction&) = delete;
  CacheTransaction& operator=(const CacheTransaction&) = delete;

  /// Keeps the first `keep` rows written and ends the transaction.
  void commit(std::int64_t keep);

 private:
  const CacheSet* caches_;
  bool open_ = true;
};

}  // namespace drafthorse
