#include "ops/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "ops/heads.h"
#include "ops/machine.h"
#include "tensor/aligned_buffer.h"

namespace drafthorse {
namespace {

float value_at(std::uint64_t seed, std::int64_t i) {
  return static_cast<float>(splitmix64(seed, static_cast<std::uint64_t>(i)) >> 40) * 0x1p-23f - 1.0f;
}

/// Keys and values of one sequence in pages, written by finish_heads without norms and (position 0 angle only) without
/// rotation.
struct Sequence {
  std::int64_t length;
  std::vector<float> keys;    // [length, kv_heads * head_dim]
  std::vector<float> values;  // the same
  AlignedBuffer memory;
  std::vector<std::byte*> pages;

  Sequence(const KvLayout& layout, std::int64_t count, std::uint64_t seed, const ExecContext& exec) : length(count) {
    const std::int64_t cols = layout.kv_heads * layout.head_dim;
    for (std::int64_t i = 0; i < count * cols; ++i) {
      keys.push_back(value_at(seed, i));
      values.push_back(value_at(seed + 1, i));
    }
    const std::int64_t page_count = (count + layout.page_positions - 1) / layout.page_positions;
    memory = AlignedBuffer(static_cast<std::size_t>(page_count) * layout.page_bytes());
    // What lies past the last position must never show.
    std::fill_n(memory.as<std::uint16_t>(), memory.size() / 2, std::uint16_t{0x7fc0});
    for (std::int64_t i = 0; i < page_count; ++i)
      pages.push_back(memory.data() + static_cast<std::size_t>(i) * layout.page_bytes());
    const std::vector<double> still(static_cast<std::size_t>(layout.head_dim / 2), 0.0);
    const RopeTable rope(still, 1.0, count, false, exec.pool);
    const HeadRun run{.rows = count, .position = 0, .pages = pages.data()};
    std::vector<float> rotated = keys;
    finish_heads({.layout = layout, .heads = layout.kv_heads, .rope = &rope}, {&run, 1}, {},
                 {rotated.data(), count, cols, cols}, {values.data(), count, cols, cols}, exec);
  }
};

struct Case {
  KvLayout layout;
  std::int64_t heads;
  std::vector<std::int64_t> lengths;  // one per sequence
  std::vector<std::int64_t> rows;     // query rows of each, at its end
  std::int64_t window = 0;
};

std::vector<float> attend(const Case& c, int threads, float softcap = 0.0f) {
  Machine machine(threads);
  const ExecContext& exec = machine.exec();
  std::vector<Sequence> sequences;
  std::vector<KvPages> pages;
  std::vector<QueryRun> runs;
  std::vector<std::int64_t> begin, end;
  std::int64_t total = 0;
  for (std::size_t s = 0; s < c.lengths.size(); ++s) {
    sequences.emplace_back(c.layout, c.lengths[s], 100 * s + 1, exec);
    runs.push_back({total, c.rows[s]});
    for (std::int64_t r = 0; r < c.rows[s]; ++r) {
      end.push_back(c.lengths[s] - c.rows[s] + r + 1);
      begin.push_back(c.window == 0 ? 0 : std::max<std::int64_t>(0, end.back() - c.window));
    }
    total += c.rows[s];
  }
  for (const Sequence& sequence : sequences) pages.push_back({sequence.pages.data(), c.layout.page_positions});
  const std::int64_t cols = c.heads * c.layout.head_dim;
  std::vector<float> q, out(static_cast<std::size_t>(total * cols), NAN);
  for (std::int64_t i = 0; i < total * cols; ++i) q.push_back(2.0f * value_at(77, i));
  Arena arena;
  const AttentionPlan plan({.layout = c.layout, .heads = c.heads, .scale = 0.5f, .softcap = softcap}, runs,
                           begin.data(), end.data(), arena, exec);
  plan.run({q.data(), total, cols, cols}, pages.data(), {out.data(), total, cols, cols}, exec);

  if (c.layout.type != ElementType::kF32) return out;
  std::int64_t row = 0;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (std::int64_t r = 0; r < c.rows[s]; ++r, ++row) {
      for (std::int64_t h = 0; h < c.heads; ++h) {
        const std::int64_t kv = h / (c.heads / c.layout.kv_heads);
        const auto at = [&](const std::vector<float>& x, std::int64_t p, std::int64_t d) {
          return static_cast<double>(x[static_cast<std::size_t>((p * c.layout.kv_heads + kv) * c.layout.head_dim + d)]);
        };
        std::vector<double> weights;
        double sum = 0.0;
        for (std::int64_t p = begin[static_cast<std::size_t>(row)]; p < end[static_cast<std::size_t>(row)]; ++p) {
          double score = 0.0;
          for (std::int64_t d = 0; d < c.layout.head_dim; ++d)
            score +=
                0.5 * q[static_cast<std::size_t>(row * cols + h * c.layout.head_dim + d)] * at(sequences[s].keys, p, d);
          if (softcap > 0) score = softcap * std::tanh(score / softcap);
          weights.push_back(std::exp(score));
          sum += weights.back();
        }
        for (std::int64_t d = 0; d < c.layout.head_dim; ++d) {
          double expected = 0.0;
          for (std::size_t i = 0; i < weights.size(); ++i) {
            expected += weights[i] / sum *
                        at(sequences[s].values, begin[static_cast<std::size_t>(row)] + static_cast<std::int64_t>(i), d);
          }
          EXPECT_NEAR(out[static_cast<std::size_t>(row * cols + h * c.layout.head_dim + d)], expected, 1e-4)
              << "row " << row << " head " << h << " dim " << d;
          if (testing::Test::HasFailure()) return out;
        }
      }
    }
  }
  return out;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{ElementType::kF32, 1, 16, 64}, 4, {1}, {1}},
      {{ElementType::kF32, 2, 32, 64}, 4, {700}, {1}},
      {{ElementType::kF32, 2, 32, 32}, 6, {1100}, {8}},
      {{ElementType::kF32, 1, 16, 64}, 1, {600}, {600}},
      {{ElementType::kF32, 2, 16, 128}, 2, {5, 1030, 64}, {5, 17, 1}},
      {{ElementType::kF32, 2, 16, 64}, 4, {1100}, {40}, 8},
      {{ElementType::kF32, 2, 16, 64}, 4, {1100}, {40}, 600},
      {{ElementType::kF32, 1, 6, 64}, 3, {90}, {2}},
  };
  return all;
}

TEST(Attention, IsTheWeightedMeanOfVisibleValues) {
  for (const Case& c : cases()) attend(c, 1);
}

TEST(Attention, ScoresAreCapped) { attend(cases()[1], 1, 2.0f); }

TEST(Attention, ThreadsAndPagesDoNotShow) {
  for (Case c : cases()) {
    for (const ElementType type : {ElementType::kF32, ElementType::kBF16}) {
      c.layout.type = type;
      const std::vector<float> expected = attend(c, 1);
      for (const int threads : {2, 3, 9})
        EXPECT_EQ(attend(c, threads), expected) << c.lengths.back() << " keys, " << threads << " threads";
      for (const std::int64_t page : {32, 64, 256}) {
        Case other = c;
        other.layout.page_positions = page;
        EXPECT_EQ(attend(other, 2), expected) << "pages of " << page;
      }
    }
  }
}

TEST(Attention, ARowThatSeesNothingIsABug) {
  Machine machine(1);
  Arena arena;
  const std::int64_t begin = 4, end = 4;
  const QueryRun run{0, 1};
  EXPECT_THROW(AttentionPlan({.layout = {ElementType::kF32, 1, 16, 64}, .heads = 1}, {&run, 1}, &begin, &end, arena,
                             machine.exec()),
               InternalError);
}

TEST(FinishHeads, NormsThenRotatesQueriesAndKeys) {
  Machine machine(2);
  const KvLayout layout{ElementType::kF32, 1, 4, 32};
  const std::vector<double> frequencies = {0.5, 0.25};
  for (const bool interleaved : {false, true}) {
    const RopeTable rope(frequencies, 2.0, 100, interleaved, machine.exec().pool);
    AlignedBuffer memory(2 * layout.page_bytes());
    std::vector<std::byte*> pages = {memory.data(), memory.data() + layout.page_bytes()};
    const std::vector<float> q_norm = {1, 2, 3, 4}, k_norm = {4, 3, 2, 1};
    std::vector<float> q(2 * 8, 1.0f), k = {3, 3, 3, 3, 5, 5, 5, 5}, v = {1, 2, 3, 4, 5, 6, 7, 8};
    const HeadRun run{.first_row = 0, .rows = 2, .position = 31, .pages = pages.data()};  // one row in each page
    finish_heads({.layout = layout,
                  .heads = 2,
                  .q_norm = q_norm.data(),
                  .k_norm = k_norm.data(),
                  .norm_eps = 0.0f,
                  .rope = &rope},
                 {&run, 1}, {q.data(), 2, 8, 8}, {k.data(), 2, 4, 4}, {v.data(), 2, 4, 4}, machine.exec());
    const auto rotated = [&](const std::vector<float>& x, std::int64_t position, std::size_t dim) {
      const std::size_t pair = interleaved ? dim / 2 : dim % 2;
      const bool second = interleaved ? dim % 2 == 1 : dim >= 2;
      const float a = interleaved ? x[2 * pair] : x[pair];
      const float b = interleaved ? x[2 * pair + 1] : x[pair + 2];
      const double angle = static_cast<double>(position) * frequencies[pair];
      return 2.0 * (second ? a * std::sin(angle) + b * std::cos(angle) : a * std::cos(angle) - b * std::sin(angle));
    };
    for (std::int64_t r = 0; r < 2; ++r) {
      for (std::size_t d = 0; d < 4; ++d) {
        for (std::size_t h = 0; h < 2; ++h)
          EXPECT_NEAR(q[static_cast<std::size_t>(r) * 8 + h * 4 + d], rotated(q_norm, 31 + r, d), 1e-5);
        const auto* page =
            reinterpret_cast<const float*>(pages[static_cast<std::size_t>(r)] + layout.head_tile_offset(31 + r, 0));
        EXPECT_NEAR(page[layout.key_element(31 + r, static_cast<std::int64_t>(d))], rotated(k_norm, 31 + r, d), 1e-5);
        EXPECT_EQ(page[layout.key_tile_bytes() / sizeof(float) +
                       static_cast<std::size_t>(layout.value_element(31 + r, static_cast<std::int64_t>(d)))],
                  v[static_cast<std::size_t>(r) * 4 + d]);
      }
    }
  }
}

TEST(FinishHeads, PositionsPastTheTableAreBugs) {
  Machine machine(1);
  const KvLayout layout{ElementType::kF32, 1, 4, 32};
  const std::vector<double> frequencies = {0.5, 0.25};
  const RopeTable rope(frequencies, 1.0, 40, false, machine.exec().pool);
  AlignedBuffer memory(2 * layout.page_bytes());
  std::vector<std::byte*> pages = {memory.data(), memory.data() + layout.page_bytes()};
  std::vector<float> k(8), v(8);
  const HeadRun run{.rows = 2, .position = 39, .pages = pages.data()};
  EXPECT_THROW(finish_heads({.layout = layout, .heads = 1, .rope = &rope}, {&run, 1}, {}, {k.data(), 2, 4, 4},
                            {v.data(), 2, 4, 4}, machine.exec()),
               InternalError);
}

}  // namespace
}  // namespace drafthorse
