#pragma once

#include <cstdint>

namespace drafthorse {

/// The key of the Gumbel noise of one position; token `id` then takes the 64 bits splitmix64(key, id). Apart from every
/// Purpose of base/random.h.
std::uint64_t noise_key(std::uint64_t seed, std::uint64_t position);

}  // namespace drafthorse
