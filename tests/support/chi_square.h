#pragma once

#include <cstdint>
#include <span>

namespace drafthorse {

/// Probability that a chi-square variable with `freedom` degrees of freedom is at least `statistic`: the regularised
/// upper incomplete gamma function Q(freedom / 2, statistic / 2).
double chi_square_tail(double statistic, std::int64_t freedom);

/// Pearson's test that `counts` were drawn from `expected` probabilities (summing to 1). Cells with an expectation
/// below 5 are pooled. A count in a cell of probability 0 gives 0.
double chi_square_p_value(std::span<const std::int64_t> counts, std::span<const double> expected);

}  // namespace drafthorse
