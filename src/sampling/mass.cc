#include "sampling/mass.h"

#include <algorithm>
#include <cstddef>

namespace drafthorse {

// Four independent sums, so that a vocabulary's worth of additions is not one long dependency chain.
double mass(std::span<const float> values) {
  double part[4] = {0, 0, 0, 0};
  std::size_t i = 0;
  for (; i + 4 <= values.size(); i += 4) {
    part[0] += values[i];
    part[1] += values[i + 1];
    part[2] += values[i + 2];
    part[3] += values[i + 3];
  }
  for (; i < values.size(); ++i) part[0] += values[i];
  return (part[0] + part[1]) + (part[2] + part[3]);
}

float normalizing_scale(double total) {
  constexpr double kLeastMass = 1e-20;  // below this a row has no mass worth the name
  return static_cast<float>(1.0 / std::max(total, kLeastMass));
}

}  // namespace drafthorse
