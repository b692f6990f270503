#include "kernels/noise_key.h"

#include "base/random.h"

namespace drafthorse {

std::uint64_t noise_key(std::uint64_t seed, std::uint64_t position) {
  constexpr std::uint64_t kGumbelPurpose = 4;  // 1 to 3 are the purposes of base/random.h
  return splitmix64(splitmix64(seed, position), kGumbelPurpose);
}

}  // namespace drafthorse
