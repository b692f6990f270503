#pragma once

#include <cstdint>

namespace drafthorse {

/// What a random draw is for. A draw is a function of (seed, position, purpose) alone, so it does not depend on how
/// many draws came before.
enum class Purpose : std::uint32_t {
  kProposal = 1,  ///< the draft's own sample for a slot
  kAccept = 2,    ///< the accept/reject coin of a drafted slot
  kToken = 3,     ///< the target's own token for a slot: plain, residual or bonus
};

/// The finalizer of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): a
/// bijection on 64 bits.
std::uint64_t mix64(std::uint64_t z);
/// SplitMix64's output number `counter` (from 0) for `seed`.
std::uint64_t splitmix64(std::uint64_t seed, std::uint64_t counter);
/// 64 random bits keyed by (seed, position, purpose).
std::uint64_t draw_bits(std::uint64_t seed, std::uint64_t position, Purpose purpose);
/// Uniform in [0, 1), 53 bits.
double draw_uniform(std::uint64_t seed, std::uint64_t position, Purpose purpose);
/// A seed from the operating system, for requests without one. Fits 53 bits, so that JSON readers keep it exactly.
std::uint64_t fresh_seed();

}  // namespace drafthorse
