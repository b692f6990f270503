#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/cpu_features.h"
#include "kernels/kernel_table.h"
#include "support/bits.h"
#include "tensor/aligned_buffer.h"
#include "tensor/kv_layout.h"

namespace drafthorse {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Half-open visible ranges, one to a query.
struct Visible {
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> end;
};

Visible full(std::int64_t queries, std::int64_t length) {
  return {std::vector<std::int64_t>(queries, 0), std::vector<std::int64_t>(queries, length)};
}
/// The queries are the last positions of the cache; each sees itself and what came before, `window` keys at most.
Visible causal(std::int64_t queries, std::int64_t length, std::int64_t window = 1 << 30) {
  Visible v = full(queries, length);
  for (std::int64_t m = 0; m < queries; ++m) {
    v.end[m] = std::max<std::int64_t>(length - queries + m + 1, 0);
    v.begin[m] = std::max<std::int64_t>(v.end[m] - window, 0);
  }
  return v;
}
/// A window around every query, open on both sides.
Visible both_sides(std::int64_t queries, std::int64_t length, std::int64_t reach) {
  Visible v = full(queries, length);
  for (std::int64_t m = 0; m < queries; ++m) {
    const std::int64_t position = length / 2 + m;
    v.begin[m] = std::clamp<std::int64_t>(position - reach, 0, length);
    v.end[m] = std::clamp<std::int64_t>(position + reach + 1, 0, length);
  }
  return v;
}

struct Shape {
  ElementType type = ElementType::kBF16;
  std::int64_t head_dim = 64;
  std::int64_t length = 100;
  std::int64_t queries = 1;
  std::int64_t group = 1;
  std::int64_t page_positions = 64;
  float softcap = 0.0f;
};

/// A cache of two kv heads (the second is used) with `length` positions written; every other byte of its pages is NaN.
class Story {
 public:
  explicit Story(const Shape& shape, const Visible& visible)
      : shape_(shape),
        visible_(visible),
        layout_{shape.type, 2, shape.head_dim, shape.page_positions},
        keys_(normal_floats(1, static_cast<std::size_t>(shape.length * shape.head_dim))),
        values_(normal_floats(2, static_cast<std::size_t>(shape.length * shape.head_dim))),
        q_(normal_floats(3, static_cast<std::size_t>(shape.queries * q_stride()), 1.5f)) {
    const std::int64_t capacity = (shape.length / kAttentionChunk + 1) * kAttentionChunk;
    for (std::int64_t p = 0; p < capacity; p += shape.page_positions) {
      buffers_.emplace_back(layout_.page_bytes());
      std::memset(buffers_.back().data(), 0xff, buffers_.back().size());
      pages_.push_back(buffers_.back().data());
    }
    for (std::int64_t p = 0; p < shape.length; ++p) write(p, &keys_[p * shape.head_dim], &values_[p * shape.head_dim]);
  }

  /// Puts NaN over every position outside [begin, end).
  void poison_outside(std::int64_t begin, std::int64_t end) {
    const std::vector<float> nan(static_cast<std::size_t>(shape_.head_dim), std::nanf(""));
    for (std::int64_t p = 0; p < shape_.length; ++p) {
      if (p < begin || p >= end) write(p, nan.data(), nan.data());
    }
  }

  std::int64_t rows() const { return shape_.queries * shape_.group; }

  struct Partial {
    std::vector<float> out, max, sum;
  };
  /// The chunk's partial results for queries [first, first + count).
  Partial chunk(const KernelTable& table, std::int64_t begin, std::int64_t first, std::int64_t count) const {
    Partial partial;
    const auto size = static_cast<std::size_t>(count * shape_.group);
    partial.out.assign(size * static_cast<std::size_t>(shape_.head_dim), std::nanf(""));
    partial.max.assign(size, std::nanf(""));
    partial.sum.assign(size, std::nanf(""));
    const AttentionTask task{.kv_type = shape_.type,
                             .head_dim = shape_.head_dim,
                             .pages = pages_.data(),
                             .page_positions = shape_.page_positions,
                             .tile_stride = layout_.tile_bytes(),
                             .head_offset = layout_.head_tile_bytes(),
                             .value_offset = layout_.key_tile_bytes(),
                             .chunk_begin = begin,
                             .chunk_end = std::min(begin + kAttentionChunk, shape_.length),
                             .q = q_.data() + first * q_stride(),
                             .q_stride = q_stride(),
                             .queries = count,
                             .group = shape_.group,
                             .visible_begin = visible_.begin.data() + first,
                             .visible_end = visible_.end.data() + first,
                             .scale = scale(),
                             .softcap = shape_.softcap,
                             .out = partial.out.data(),
                             .max = partial.max.data(),
                             .sum = partial.sum.data()};
    table.attention(task);
    return partial;
  }

  /// [count * group, head_dim]: all chunks, combined.
  std::vector<float> run(const KernelTable& table, std::int64_t first, std::int64_t count) const {
    std::vector<Partial> partials;
    std::vector<float> values, max, sum;
    const std::int64_t chunks = (shape_.length + kAttentionChunk - 1) / kAttentionChunk;
    for (std::int64_t c = 0; c < chunks; ++c) {
      const Partial partial = chunk(table, c * kAttentionChunk, first, count);
      values.insert(values.end(), partial.out.begin(), partial.out.end());
      max.insert(max.end(), partial.max.begin(), partial.max.end());
      sum.insert(sum.end(), partial.sum.begin(), partial.sum.end());
    }
    const std::int64_t size = count * shape_.group;
    std::vector<float> out(static_cast<std::size_t>(size * shape_.head_dim), std::nanf(""));
    for (std::int64_t row = 0; row < size; ++row) {
      table.attention_combine({.head_dim = shape_.head_dim,
                               .chunks = chunks,
                               .partial = values.data() + row * shape_.head_dim,
                               .partial_stride = size * shape_.head_dim,
                               .max = max.data() + row,
                               .sum = sum.data() + row,
                               .stat_stride = size,
                               .out = out.data() + row * shape_.head_dim});
    }
    return out;
  }
  std::vector<float> run(const KernelTable& table) const { return run(table, 0, shape_.queries); }

  /// The closed form in double precision from the values the cache holds; `size` is the weighted mean of |value|.
  void exact(std::int64_t row, std::vector<double>& out, std::vector<double>& size) const {
    const std::int64_t m = row / shape_.group;
    const float* q = q_.data() + m * q_stride() + row % shape_.group * shape_.head_dim;
    const auto dims = static_cast<std::size_t>(shape_.head_dim);
    std::vector<double> scores;
    for (std::int64_t p = visible_.begin[m]; p < visible_.end[m]; ++p) {
      double score = 0;
      for (std::size_t d = 0; d < dims; ++d) {
        score += static_cast<double>(held(q[d] * scale())) * held(keys_[static_cast<std::size_t>(p) * dims + d]);
      }
      scores.push_back(shape_.softcap != 0 ? shape_.softcap * std::tanh(score / shape_.softcap) : score);
    }
    out.assign(dims, 0);
    size.assign(dims, 0);
    if (scores.empty()) return;
    const double max = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double w = std::exp(scores[i] - max);
      sum += w;
      for (std::size_t d = 0; d < dims; ++d) {
        const double v = held(values_[(static_cast<std::size_t>(visible_.begin[m]) + i) * dims + d]);
        out[d] += w * v;
        size[d] += w * std::abs(v);
      }
    }
    for (std::size_t d = 0; d < dims; ++d) {
      out[d] /= sum;
      size[d] /= sum;
    }
  }

 private:
  std::int64_t q_stride() const { return shape_.group * shape_.head_dim + 3; }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.head_dim)); }
  float held(float x) const { return shape_.type == ElementType::kBF16 ? bf16_to_float(float_to_bf16(x)) : x; }
  void write(std::int64_t p, const float* key, const float* value) {
    std::byte* tile =
        buffers_[static_cast<std::size_t>(p / shape_.page_positions)].data() + layout_.head_tile_offset(p, 1);
    kernel_table("scalar").kv_write(shape_.type, shape_.head_dim, p % kKvTile, key, value, tile,
                                    tile + layout_.key_tile_bytes());
  }

  Shape shape_;
  Visible visible_;
  KvLayout layout_;
  std::vector<float> keys_, values_, q_;
  std::vector<AlignedBuffer> buffers_;
  std::vector<const std::byte*> pages_;
};

/// Bits equal to scalar's are promised, except for a bf16 cache where the table multiplies with AVX512-BF16.
bool bits_promised(const KernelTable& table, ElementType type) {
  return type == ElementType::kF32 || std::string_view(table.name) != "avx512" || !cpu_features().avx512_bf16;
}

/// docs/numerics.md, attention: |result - exact| <= bound * (weighted mean of |v|).
double bound(ElementType type) { return type == ElementType::kBF16 ? 0x1p-8 : 0x1p-19; }

void expect_near_exact(const Story& story, const std::vector<float>& result, ElementType type) {
  std::vector<double> out, size;
  const std::size_t dims = result.size() / static_cast<std::size_t>(story.rows());
  for (std::int64_t row = 0; row < story.rows(); ++row) {
    story.exact(row, out, size);
    for (std::size_t d = 0; d < dims; ++d) {
      const double error = std::abs(result[static_cast<std::size_t>(row) * dims + d] - out[d]);
      ASSERT_LE(error, bound(type) * size[d]) << "row " << row << " dimension " << d << " exact " << out[d];
    }
  }
}

void expect_contract(const Shape& shape, const Visible& visible) {
  SCOPED_TRACE(testing::Message() << element_name(shape.type) << " head_dim " << shape.head_dim << " length "
                                  << shape.length << " queries " << shape.queries << " group " << shape.group
                                  << " page " << shape.page_positions << " softcap " << shape.softcap);
  const Story story(shape, visible);
  const std::vector<float> reference = story.run(kernel_table("scalar"));
  expect_near_exact(story, reference, shape.type);
  for (const KernelTable* table : runnable_kernel_tables()) {
    SCOPED_TRACE(table->name);
    const std::vector<float> result = story.run(*table);
    if (bits_promised(*table, shape.type)) {
      ASSERT_TRUE(same_bits(reference, result));
    } else {
      expect_near_exact(story, result, shape.type);
    }
    if (testing::Test::HasFatalFailure()) return;
  }
}

constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kBF16};

TEST(Attention, EveryTableAgreesForEveryHeadDim) {
  for (ElementType type : kTypes) {
    for (std::int64_t head_dim : {2, 10, 16, 32, 64, 72, 80, 96, 128, 256, 512}) {
      const Shape shape{.type = type, .head_dim = head_dim, .length = 75, .queries = 5, .group = 2};
      expect_contract(shape, causal(5, 75));
    }
  }
}

TEST(Attention, EveryTableAgreesForOneToSeventeenQueriesAndOneToSevenHeadsAKvHead) {
  for (ElementType type : kTypes) {
    for (std::int64_t queries = 1; queries <= 17; ++queries) {
      const std::int64_t group = 1 + queries % 7;
      const Shape shape{.type = type, .head_dim = 16, .length = 90, .queries = queries, .group = group};
      expect_contract(shape, causal(queries, 90));
      expect_contract(shape, full(queries, 90));
    }
  }
}

TEST(Attention, EveryTableAgreesForSlidingWindows) {
  for (ElementType type : kTypes) {
    for (std::int64_t window : {1, 2, 3, 31, 32, 33, 100}) {
      const Shape shape{.type = type, .head_dim = 16, .length = 600, .queries = 9, .group = 2};
      expect_contract(shape, causal(9, 600, window));
      expect_contract(shape, both_sides(9, 600, window));
    }
  }
}

TEST(Attention, EveryTableAgreesWithASoftcap) {
  for (ElementType type : kTypes) {
    const Shape shape{.type = type, .head_dim = 32, .length = 130, .queries = 3, .group = 3, .softcap = 2.0f};
    expect_contract(shape, causal(3, 130));
  }
}

TEST(Attention, EveryTableAgreesForEveryCachedLengthModulo128) {
  for (ElementType type : kTypes) {
    for (std::int64_t length = 1; length <= 128; ++length) {
      const Shape shape{.type = type, .head_dim = 16, .length = length, .queries = 3, .group = 1};
      expect_contract(shape, causal(3, length));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Attention, EveryTableAgreesAroundTheEndOfAChunk) {
  for (ElementType type : kTypes) {
    for (std::int64_t length : {508, 510, 511, 512, 513, 514, 519, 1023, 1024, 1025}) {
      const Shape shape{
          .type = type, .head_dim = 16, .length = length, .queries = 8, .group = 2, .page_positions = 128};
      expect_contract(shape, causal(8, length));
    }
  }
}

TEST(Attention, PagesOfEverySizeGiveTheSameBits) {
  for (ElementType type : kTypes) {
    for (const KernelTable* table : runnable_kernel_tables()) {
      SCOPED_TRACE(table->name);
      Shape shape{.type = type, .head_dim = 32, .length = 700, .queries = 4, .group = 2, .page_positions = 32};
      const std::vector<float> expected = Story(shape, causal(4, 700)).run(*table);
      for (std::int64_t page_positions : {64, 128, 512}) {
        shape.page_positions = page_positions;
        EXPECT_TRUE(same_bits(expected, Story(shape, causal(4, 700)).run(*table))) << page_positions;
      }
    }
  }
}

// Exactness of the whole program rests on these two.
TEST(Attention, ARowsBitsDoNotDependOnTheOtherRowsOfTheTask) {
  for (ElementType type : kTypes) {
    for (std::int64_t group : {1, 2, 3, 7}) {
      const Shape shape{.type = type, .head_dim = 80, .length = 530, .queries = 17, .group = group};
      for (const Visible& visible : {causal(17, 530), causal(17, 530, 37), full(17, 530), both_sides(17, 530, 40)}) {
        const Story story(shape, visible);
        for (const KernelTable* table : runnable_kernel_tables()) {
          if (std::string_view(table->name) == "scalar") continue;  // walks row by row
          SCOPED_TRACE(table->name);
          const std::vector<float> together = story.run(*table);
          const std::size_t size = together.size() / 17;
          for (std::int64_t m = 0; m < 17; ++m) {
            const std::vector<float> alone = story.run(*table, m, 1);
            ASSERT_TRUE(same_bits(std::span(together).subspan(static_cast<std::size_t>(m) * size, size), alone))
                << "query " << m;
          }
          const std::vector<float> some = story.run(*table, 3, 6);
          ASSERT_TRUE(same_bits(std::span(together).subspan(3 * size, 6 * size), some));
        }
      }
    }
  }
}

TEST(Attention, WhatInvisibleMemoryHoldsDoesNotShow) {
  for (ElementType type : kTypes) {
    const Shape shape{.type = type, .head_dim = 36, .length = 140, .queries = 8, .group = 2};
    for (const Visible& visible : {causal(8, 140), causal(8, 140, 21), causal(8, 140, 2), both_sides(8, 140, 33)}) {
      for (const KernelTable* table : runnable_kernel_tables()) {
        SCOPED_TRACE(table->name);
        const std::vector<float> together = Story(shape, visible).run(*table);
        const std::size_t size = together.size() / 8;
        for (std::int64_t m = 0; m < 8; ++m) {
          Story poisoned(shape, visible);
          poisoned.poison_outside(visible.begin[m], visible.end[m]);
          const std::vector<float> result = poisoned.run(*table);
          const auto expected = std::span(together).subspan(static_cast<std::size_t>(m) * size, size);
          ASSERT_FALSE(std::isnan(expected[0]));
          ASSERT_TRUE(same_bits(expected, std::span(result).subspan(static_cast<std::size_t>(m) * size, size)))
              << "query " << m;
        }
      }
    }
  }
}

TEST(Attention, AChunkThatShowsNothingHasSumZeroAndIsSkipped) {
  for (ElementType type : kTypes) {
    const Shape shape{.type = type, .head_dim = 20, .length = 600, .queries = 2, .group = 2};
    const Story story(shape, Visible{{0, 300}, {0, 310}});  // the first query sees nothing at all
    for (const KernelTable* table : runnable_kernel_tables()) {
      SCOPED_TRACE(table->name);
      const Story::Partial second = story.chunk(*table, 512, 0, 2);
      EXPECT_EQ(second.max, std::vector<float>(4, -kInfinity));
      EXPECT_EQ(second.sum, std::vector<float>(4, 0.0f));
      EXPECT_EQ(second.out, std::vector<float>(80, 0.0f));
      const std::vector<float> result = story.run(*table);
      EXPECT_EQ(std::vector<float>(result.begin(), result.begin() + 40), std::vector<float>(40, 0.0f));
      EXPECT_NE(result[40], 0.0f);
    }
  }
}

TEST(Attention, PartialResultsAreEqualBitsToo) {
  for (ElementType type : kTypes) {
    const Shape shape{.type = type, .head_dim = 48, .length = 600, .queries = 4, .group = 3};
    const Story story(shape, causal(4, 600));
    for (std::int64_t begin : {0, 512}) {
      const Story::Partial expected = story.chunk(kernel_table("scalar"), begin, 0, 4);
      for (const KernelTable* table : runnable_kernel_tables()) {
        if (!bits_promised(*table, type)) continue;
        SCOPED_TRACE(table->name);
        const Story::Partial result = story.chunk(*table, begin, 0, 4);
        EXPECT_TRUE(same_bits(expected.out, result.out));
        EXPECT_TRUE(same_bits(expected.max, result.max));
        EXPECT_TRUE(same_bits(expected.sum, result.sum));
      }
    }
  }
}

}  // namespace
}  // namespace drafthorse
