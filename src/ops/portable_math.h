#pragma once

namespace drafthorse {

/// Elementary functions in double precision whose bits are the same on every machine: only additions, multiplications
/// and divisions of IEEE 754, in a fixed order, never the system's math library. Absolute error below 1e-15 (sin, cos),
/// relative error below 1e-15 (log away from 1, exp). For tables that are computed once.
struct SinCos {
  double sin;
  double cos;
};
/// |x| up to 2^22.
SinCos portable_sin_cos(double x);
/// Natural logarithm; x > 0 and finite.
double portable_log(double x);
/// e^x; |x| up to 700.
double portable_exp(double x);

}  // namespace drafthorse
