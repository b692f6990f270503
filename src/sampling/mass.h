#pragma once

#include <span>

namespace drafthorse {

/// Sum in double of float32 values, in one fixed order.
double mass(std::span<const float> values);

}  // namespace drafthorse
