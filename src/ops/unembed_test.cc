#include "ops/unembed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "ops/machine.h"
#include "tensor/arena.h"

namespace drafthorse {
namespace {

constexpr std::int64_t kWidth = 64;

/// A head whose row n is `scale(n)` in column 0 and 0 elsewhere: with a hidden row of (h, 0, ..) the logit of n is
/// scale(n) * h.
template <typename Scale>
PackedMatrix head_of(std::int64_t vocab, Scale scale) {
  std::vector<float> values(static_cast<std::size_t>(vocab * kWidth));
  for (std::int64_t n = 0; n < vocab; ++n) values[static_cast<std::size_t>(n * kWidth)] = scale(n);
  PackedMatrix head = packed_matrix(WeightType::kF32, vocab, kWidth);
  const StoredMatrix stored{ElementType::kF32, vocab, kWidth, std::as_bytes(std::span(values))};
  pack_tiles({&stored, 1}, "head", 0, head.tiles(), head);
  return head;
}

struct Results {
  std::vector<std::int32_t> argmax;
  std::vector<std::uint64_t> hash;
  std::vector<float> logits;
};
Results run(const PackedMatrix& head, const std::vector<float>& firsts, bool stored, const ExecContext& exec,
            float multiplier = 1.0f, float cap = 0.0f) {
  const auto rows = static_cast<std::int64_t>(firsts.size());
  std::vector<float> x(static_cast<std::size_t>(rows * kWidth));
  for (std::int64_t r = 0; r < rows; ++r) x[static_cast<std::size_t>(r * kWidth)] = firsts[static_cast<std::size_t>(r)];
  Arena arena;
  std::byte* buffer = arena.bytes(packed_rows_bytes(head.type, rows, kWidth, exec));
  const PackedRows packed = pack_rows({x.data(), rows, kWidth, kWidth}, head.type, buffer, exec);
  Results results{std::vector<std::int32_t>(firsts.size(), -7), std::vector<std::uint64_t>(firsts.size(), 7), {}};
  results.logits.resize(stored ? static_cast<std::size_t>(rows * head.rows) : 0);
  unembed(head, packed,
          {.multiplier = multiplier,
           .cap = cap,
           .logits = stored ? Rows{results.logits.data(), rows, head.rows, head.rows} : Rows{},
           .argmax = results.argmax.data(),
           .hash = results.hash.data()},
          arena, exec);
  return results;
}

float noise(std::int64_t n) {
  return static_cast<float>(splitmix64(9, static_cast<std::uint64_t>(n)) >> 40) * 0x1p-24f;
}

TEST(Unembed, ArgmaxAndHashAreThoseOfTheWholeRow) {
  for (const std::int64_t vocab : {1, 33, 512, 513, 3000}) {
    const PackedMatrix head = head_of(vocab, noise);
    for (const int threads : {1, 2, 5}) {
      Machine machine(threads);
      for (const std::int64_t rows : {1, 3, 20}) {
        std::vector<float> firsts;
        for (std::int64_t r = 0; r < rows; ++r) firsts.push_back(r % 2 == 0 ? 1.5f + static_cast<float>(r) : -2.0f);
        const Results whole = run(head, firsts, true, machine.exec());
        const Results reduced = run(head, firsts, false, machine.exec());
        EXPECT_EQ(whole.argmax, reduced.argmax);
        EXPECT_EQ(whole.hash, reduced.hash);
        for (std::int64_t r = 0; r < rows; ++r) {
          const float* row = whole.logits.data() + r * vocab;
          EXPECT_EQ(whole.argmax[static_cast<std::size_t>(r)], machine.exec().kernels.argmax(row, vocab))
              << vocab << ", row " << r;
          EXPECT_EQ(whole.hash[static_cast<std::size_t>(r)], machine.exec().kernels.logits_hash(row, 0, vocab))
              << vocab << ", row " << r;
          for (std::int64_t n = 0; n < vocab; ++n) EXPECT_EQ(row[n], noise(n) * firsts[static_cast<std::size_t>(r)]);
        }
      }
    }
  }
}

TEST(Unembed, TheLowestIdWinsATieAcrossRanges) {
  Machine machine(3);
  for (const std::int64_t first : {0, 31, 511, 700, 1400}) {
    const PackedMatrix head =
        head_of(2000, [&](std::int64_t n) { return n == first || n == 1500 || n == 1999 ? 2.0f : 1.0f; });
    EXPECT_EQ(run(head, {1.0f}, false, machine.exec()).argmax[0], first);
  }
}

TEST(Unembed, NanNeverBeatsANumber) {
  Machine machine(2);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const PackedMatrix head = head_of(1500, [](std::int64_t n) { return n == 1000 ? -3.0f : -4.0f; });
  // A NaN in the hidden row makes every logit NaN.
  const Results results = run(head, {1.0f, nan}, false, machine.exec());
  EXPECT_EQ(results.argmax[0], 1000);
  EXPECT_EQ(results.argmax[1], 0);
  // Infinity times 0 is NaN in all logits but those whose weight is not 0.
  const PackedMatrix mixed = head_of(1500, [](std::int64_t n) { return n == 1200 ? -1.0f : 0.0f; });
  EXPECT_EQ(run(mixed, {std::numeric_limits<float>::infinity()}, false, machine.exec()).argmax[0], 1200);
}

TEST(Unembed, LogitsAreMultipliedThenCapped) {
  Machine machine(2);
  const PackedMatrix head = head_of(700, noise);
  const Results results = run(head, {8.0f}, true, machine.exec(), 0.5f, 3.0f);
  for (std::int64_t n = 0; n < 700; ++n) {
    EXPECT_NEAR(results.logits[static_cast<std::size_t>(n)], 3.0 * std::tanh(0.5 * 8.0 * noise(n) / 3.0), 1e-5);
  }
  const Results reduced = run(head, {8.0f}, false, machine.exec(), 0.5f, 3.0f);
  EXPECT_EQ(results.hash, reduced.hash);
  EXPECT_EQ(results.argmax, reduced.argmax);
}

}  // namespace
}  // namespace drafthorse
