#include "ops/portable_math.h"

#include <cmath>

#include "base/check.h"

namespace drafthorse {
namespace {

// A constant as a sum of parts. The first two have 30 bits, so that their product with a whole number below 2^23 is
// exact.
struct Parts {
  double high;
  double middle;
  double low;
};
constexpr Parts kHalfPi = {0x1.921fb54p+0, 0x1.10b46118p-30, 0x1.313198a2e0370p-61};
constexpr Parts kLn2 = {0x1.62e42fe8p-1, 0x1.e8e7bcdp-31, 0x1.793c7673007e5p-61};
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
constexpr double kOneOverLn2 = 0x1.71547652b82fep+0;
constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;

double remainder_of(double x, double k, const Parts& unit) {
  return ((x - k * unit.high) - k * unit.middle) - k * unit.low;
}

// Taylor series, smallest term first. |r| <= pi / 4: the first term left out is below 1e-20.
double sin_near_zero(double r) {
  const double square = r * r;
  double sum = 1.0;
  for (int n = 20; n >= 2; n -= 2) sum = 1.0 - sum * square / static_cast<double>(n * (n + 1));
  return r * sum;
}

double cos_near_zero(double r) {
  const double square = r * r;
  double sum = 1.0;
  for (int n = 21; n >= 1; n -= 2) sum = 1.0 - sum * square / static_cast<double>(n * (n + 1));
  return sum;
}

}  // namespace

SinCos portable_sin_cos(double x) {
  DRAFTHORSE_CHECK(std::abs(x) <= 0x1p22, "angle " << x);
  const double k = std::floor(x * kTwoOverPi + 0.5);
  const double r = remainder_of(x, k, kHalfPi);
  const double s = sin_near_zero(r);
  const double c = cos_near_zero(r);
  switch (static_cast<long long>(k) & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

double portable_log(double x) {
  DRAFTHORSE_CHECK(x > 0.0 && std::isfinite(x), "log of " << x);
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact
  if (m < kSqrtHalf) {
    m *= 2.0;
    --exponent;
  }
  // log m = 2 artanh f, |f| < 0.172.
  const double f = (m - 1.0) / (m + 1.0);
  const double square = f * f;
  double sum = 0.0;
  for (int n = 27; n >= 3; n -= 2) sum = (sum + 1.0 / n) * square;
  const auto k = static_cast<double>(exponent);
  return k * kLn2.high + (k * kLn2.middle + (k * kLn2.low + 2.0 * f * sum) + 2.0 * f);
}

double portable_exp(double x) {
  DRAFTHORSE_CHECK(std::abs(x) <= 700.0, "exp of " << x);
  const double k = std::floor(x * kOneOverLn2 + 0.5);
  const double r = remainder_of(x, k, kLn2);
  double sum = 1.0;
  for (int n = 20; n >= 1; --n) sum = 1.0 + sum * r / static_cast<double>(n);
  return std::ldexp(sum, static_cast<int>(k));  // exact
}

}  // namespace drafthorse
