#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "support/loaded_network.h"

namespace drafthorse {

/// Values computed by other software, one safetensors file of them.
class ReferenceValues {
 public:
  explicit ReferenceValues(const std::string& path) : source_(open_safetensors(path)) {}

  bool has(const std::string& name) const { return source_->has(name); }
  std::vector<std::int32_t> ints(const std::string& name) const { return values<std::int32_t>(name); }
  std::vector<float> floats(const std::string& name) const { return values<float>(name); }
  RowCopy rows(const std::string& name) const {
    RowCopy copy;
    const TensorView* view = source_->find(name);
    if (view == nullptr) return copy;
    copy.rows = view->shape.at(0);
    copy.cols = view->shape.at(1);
    copy.values = floats(name);
    return copy;
  }

 private:
  template <typename T>
  std::vector<T> values(const std::string& name) const {
    const TensorView* view = source_->find(name);
    if (view == nullptr) {
      ADD_FAILURE() << "no " << name;
      return {};
    }
    std::vector<T> copy(static_cast<std::size_t>(view->elements()));
    if (copy.size() * sizeof(T) != view->bytes.size()) {
      ADD_FAILURE() << name << " has another type";
      return {};
    }
    std::memcpy(copy.data(), view->bytes.data(), view->bytes.size());
    return copy;
  }

  std::unique_ptr<TensorSource> source_;
};

/// Expects equal shapes and a largest absolute difference of at most `bound`.
inline void expect_close(const RowCopy& actual, const RowCopy& expected, double bound, const std::string& what) {
  ASSERT_EQ(actual.rows, expected.rows) << what;
  ASSERT_EQ(actual.cols, expected.cols) << what;
  double worst = 0.0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < actual.values.size(); ++i) {
    double difference = std::abs(static_cast<double>(actual.values[i]) - expected.values[i]);
    if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
    if (difference <= worst) continue;
    worst = difference;
    at = i;
  }
  const auto cols = static_cast<std::size_t>(actual.cols);
  EXPECT_LE(worst, bound) << what << ": row " << at / cols << ", column " << at % cols << ": " << actual.values[at]
                          << " against " << expected.values[at];
}

}  // namespace drafthorse
