#include "sampling/distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "support/chi_square.h"

namespace drafthorse {
namespace {

using Ids = std::vector<std::int32_t>;
using Probs = std::vector<float>;

Distribution dense(const std::vector<Probs>& rows) {
  Distribution out;
  for (const Probs& row : rows) {
    std::copy(row.begin(), row.end(), out.add_dense(static_cast<std::int64_t>(row.size())).begin());
  }
  return out;
}

Distribution sparse(const Ids& ids, const Probs& probs) {
  Distribution out;
  out.add_sparse(ids, probs);
  return out;
}

Probs residual(const Distribution& p, const Distribution& q) {
  Distribution out;
  out.add_residual(p, 0, q, 0);
  EXPECT_EQ(out.dense(), p.dense());
  if (!p.dense()) {
    EXPECT_EQ(Ids(out.ids(0).begin(), out.ids(0).end()), Ids(p.ids(0).begin(), p.ids(0).end()));
  }
  return Probs(out.probs(0).begin(), out.probs(0).end());
}

void expect_near(const Probs& have, const Probs& want) {
  ASSERT_EQ(have.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(have[i], want[i], 1e-6f) << "entry " << i;
}

TEST(Distribution, ATokenOutsideASparseRowHasProbabilityZero) {
  const Distribution row = sparse({2, 5}, {0.7f, 0.3f});
  EXPECT_EQ(row.prob(0, 2), 0.7f);
  EXPECT_EQ(row.prob(0, 5), 0.3f);
  EXPECT_EQ(row.prob(0, 0), 0.0f);
  EXPECT_EQ(row.prob(0, 4), 0.0f);
  EXPECT_EQ(row.prob(0, 6), 0.0f);
  EXPECT_THROW(dense({{0.5f, 0.5f}}).prob(0, 2), InternalError);
}

TEST(Distribution, RowsOfDifferentLayoutsDoNotMix) {
  Distribution rows = sparse({1}, {1.0f});
  EXPECT_THROW(rows.add_dense(3), InternalError);
  rows.clear();
  rows.add_dense(3);
  EXPECT_THROW(rows.add_sparse(Ids{1}, Probs{1.0f}), InternalError);
  EXPECT_THROW(rows.add_dense(4), InternalError);
  EXPECT_EQ(rows.rows(), 1);
}

TEST(Distribution, SparseIdsMustAscend) {
  Distribution rows;
  EXPECT_THROW(rows.add_sparse(Ids{3, 3}, Probs{0.5f, 0.5f}), InternalError);
  EXPECT_THROW(rows.add_sparse(Ids{3, 2}, Probs{0.5f, 0.5f}), InternalError);
  EXPECT_THROW(rows.add_sparse(Ids{3}, Probs{0.5f, 0.5f}), InternalError);
}

TEST(Distribution, RowsMayHaveDifferentLengthsAndASliceKeepsThem) {
  Distribution rows = sparse({1, 2}, {0.5f, 0.5f});
  rows.add_sparse(Ids{7}, Probs{1.0f});
  rows.add_sparse(Ids{3, 4, 9}, Probs{0.2f, 0.3f, 0.5f});
  const Distribution tail = rows.slice(1, 3);
  ASSERT_EQ(tail.rows(), 2);
  EXPECT_EQ(tail.prob(0, 7), 1.0f);
  EXPECT_EQ(tail.prob(1, 9), 0.5f);
  EXPECT_EQ(tail.prob(1, 7), 0.0f);
  EXPECT_EQ(dense({{1, 0}, {0, 1}}).slice(1, 2).prob(0, 1), 1.0f);
  EXPECT_EQ(rows.slice(1, 1).rows(), 0);
  EXPECT_THROW(rows.slice(2, 4), InternalError);
}

TEST(Distribution, ClearedMemoryDoesNotShineThrough) {
  Distribution rows = dense({{0.1f, 0.2f, 0.7f}, {1, 0, 0}});
  rows.clear();
  EXPECT_EQ(rows.rows(), 0);
  rows.add_sparse(Ids{0, 9}, Probs{0.4f, 0.6f});
  EXPECT_EQ(rows.prob(0, 9), 0.6f);
  EXPECT_EQ(rows.ids(0).size(), 2u);
}

TEST(Distribution, ADrawFallsWhereTheUniformSays) {
  const Distribution row = dense({{0.0f, 0.25f, 0.0f, 0.5f, 0.25f, 0.0f}});
  EXPECT_EQ(row.sample(0, 0.0), 1);  // the zero entry before it is never drawn
  EXPECT_EQ(row.sample(0, 0.2499), 1);
  EXPECT_EQ(row.sample(0, 0.25), 3);
  EXPECT_EQ(row.sample(0, 0.7499), 3);
  EXPECT_EQ(row.sample(0, 0.75), 4);
  EXPECT_EQ(row.sample(0, std::nextafter(1.0, 0.0)), 4);
  EXPECT_EQ(sparse({3, 8}, {0.5f, 0.5f}).sample(0, 0.6), 8);
}

TEST(Distribution, ARowWithoutMassGivesNoToken) {
  EXPECT_EQ(dense({{0, 0, 0}}).sample(0, 0.5), std::nullopt);
  EXPECT_EQ(sparse({}, {}).sample(0, 0.5), std::nullopt);
  EXPECT_EQ(dense({{std::nanf(""), 1.0f}}).sample(0, 0.5), std::nullopt);
}

TEST(Distribution, DrawsOverManyBlocksFollowTheProbabilities) {
  constexpr std::int64_t kIds = 5000;  // several summing blocks, the last one short
  Distribution row;
  const std::span<float> probs = row.add_dense(kIds);
  std::vector<double> bins(50);
  double total = 0;
  for (std::int64_t i = 0; i < kIds; ++i) {
    probs[static_cast<std::size_t>(i)] = i % 7 == 0 ? 0.0f : static_cast<float>(1 + i % 13);
    total += probs[static_cast<std::size_t>(i)];
  }
  for (std::int64_t i = 0; i < kIds; ++i)
    bins[static_cast<std::size_t>(i / 100)] += probs[static_cast<std::size_t>(i)] / total;
  std::vector<std::int64_t> counts(50);
  for (std::uint64_t draw = 0; draw < 100000; ++draw) {
    const std::int32_t token = row.sample(0, draw_uniform(5, draw, Purpose::kToken)).value();
    ASSERT_NE(token % 7, 0);
    ++counts[static_cast<std::size_t>(token / 100)];
  }
  EXPECT_GT(chi_square_p_value(counts, bins), 1e-4);
}

TEST(Distribution, TheResidualOfEveryPairOfLayouts) {
  expect_near(residual(sparse({2, 5}, {0.7f, 0.3f}), sparse({2, 4}, {0.2f, 0.8f})), {0.625f, 0.375f});
  expect_near(residual(dense({{0.2f, 0.5f, 0.3f}}), sparse({0, 2}, {0.1f, 0.9f})), {1.0f / 6, 5.0f / 6, 0});
  expect_near(residual(dense({{0.2f, 0.5f, 0.3f}}), dense({{0.1f, 0.0f, 0.9f}})), {1.0f / 6, 5.0f / 6, 0});
  expect_near(residual(sparse({0, 1}, {0.3f, 0.7f}), dense({{0.6f, 0.4f}})), {0, 1});
}

TEST(Distribution, AResidualOfNothingIsAllZerosAndNoNaN) {
  expect_near(residual(sparse({3}, {1.0f}), sparse({3}, {1.0f})), {0});
  expect_near(residual(dense({{0.5f, 0.5f}}), dense({{0.5f, 0.5f}})), {0, 0});
  expect_near(residual(dense({{0.0f, 1.0f}}), sparse({1}, {1.0f})), {0, 0});
}

}  // namespace
}  // namespace drafthorse
