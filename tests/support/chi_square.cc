#include "support/chi_square.h"

#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace drafthorse {
namespace {

constexpr int kTerms = 10000;
constexpr double kSmall = 1e-300;

// P(a, x) by its series, for x < a + 1.
double lower_series(double a, double x) {
  double term = 1.0 / a;
  double sum = term;
  for (int n = 1; n < kTerms && term > sum * 1e-16; ++n) {
    term *= x / (a + n);
    sum += term;
  }
  return sum * std::exp(-x + a * std::log(x) - std::lgamma(a));
}

// Q(a, x) by its continued fraction (Lentz's method), for x >= a + 1.
double upper_fraction(double a, double x) {
  double b = x + 1.0 - a;
  double c = 1.0 / kSmall;
  double d = 1.0 / b;
  double h = d;
  for (int n = 1; n < kTerms; ++n) {
    const double an = -n * (n - a);
    b += 2.0;
    d = an * d + b;
    if (std::abs(d) < kSmall) d = kSmall;
    c = b + an / c;
    if (std::abs(c) < kSmall) c = kSmall;
    d = 1.0 / d;
    const double factor = d * c;
    h *= factor;
    if (std::abs(factor - 1.0) < 1e-15) break;
  }
  return h * std::exp(-x + a * std::log(x) - std::lgamma(a));
}

}  // namespace

double chi_square_tail(double statistic, std::int64_t freedom) {
  const double a = 0.5 * static_cast<double>(freedom);
  const double x = 0.5 * statistic;
  if (x <= 0.0) return 1.0;
  return x < a + 1.0 ? 1.0 - lower_series(a, x) : upper_fraction(a, x);
}

double chi_square_p_value(std::span<const std::int64_t> counts, std::span<const double> expected) {
  DRAFTHORSE_CHECK(counts.size() == expected.size(), counts.size() << " counts, " << expected.size() << " cells");
  double samples = 0.0;
  for (const std::int64_t count : counts) samples += static_cast<double>(count);
  double statistic = 0.0;
  double pooled_count = 0.0;
  double pooled_expected = 0.0;
  std::int64_t cells = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double want = samples * expected[i];
    const auto have = static_cast<double>(counts[i]);
    if (want == 0.0) {
      if (have > 0.0) return 0.0;
    } else if (want < 5.0) {
      pooled_count += have;
      pooled_expected += want;
    } else {
      statistic += (have - want) * (have - want) / want;
      ++cells;
    }
  }
  if (pooled_expected > 0.0) {
    statistic += (pooled_count - pooled_expected) * (pooled_count - pooled_expected) / pooled_expected;
    ++cells;
  }
  DRAFTHORSE_CHECK(cells >= 2, "one cell tells nothing");
  return chi_square_tail(statistic, cells - 1);
}

}  // namespace drafthorse
