#include "tensor/arena.h"

#include <algorithm>

namespace drafthorse {
namespace {

constexpr std::size_t kFirstBlock = std::size_t{1} << 16;

}  // namespace

std::byte* Arena::bytes(std::size_t count) {
  count = (count + 63) / 64 * 64;
  if (blocks_.empty() || used_ + count > blocks_.back().size()) {
    const std::size_t last = blocks_.empty() ? kFirstBlock : blocks_.back().size();
    blocks_.emplace_back(std::max(count, 2 * last));
    used_ = 0;
  }
  std::byte* result = blocks_.back().data() + used_;
  used_ += count;
  return result;
}

Rows Arena::rows(std::int64_t row_count, std::int64_t col_count) {
  const std::int64_t stride = (col_count + 15) / 16 * 16;
  return {array<float>(static_cast<std::size_t>(row_count * stride)), row_count, col_count, stride};
}

void Arena::reset() {
  if (blocks_.size() > 1) {
    std::size_t total = 0;
    for (const AlignedBuffer& block : blocks_) total += block.size();
    blocks_.clear();
    blocks_.emplace_back(total);
  }
  used_ = 0;
}

}  // namespace drafthorse
