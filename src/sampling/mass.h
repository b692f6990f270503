#pragma once

#include <span>

namespace drafthorse {

/// Sum in double of float32 values, in one fixed order.
double mass(std::span<const float> values);

/// 1 / total as the factor that makes values of that mass sum to 1; finite also for a total of 0.
float normalizing_scale(double total);

}  // namespace drafthorse
