#include "base/random.h"

#include <random>

namespace drafthorse {

std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t splitmix64(std::uint64_t seed, std::uint64_t counter) {
  return mix64(seed + 0x9e3779b97f4a7c15u * (counter + 1));
}

std::uint64_t draw_bits(std::uint64_t seed, std::uint64_t position, Purpose purpose) {
  return splitmix64(splitmix64(seed, position), static_cast<std::uint64_t>(purpose));
}

double draw_uniform(std::uint64_t seed, std::uint64_t position, Purpose purpose) {
  return static_cast<double>(draw_bits(seed, position, purpose) >> 11) * 0x1p-53;
}

std::uint64_t fresh_seed() {
  std::random_device device;
  return ((static_cast<std::uint64_t>(device()) << 32) | device()) >> 11;
}

}  // namespace drafthorse
