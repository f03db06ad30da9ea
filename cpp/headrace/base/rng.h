// Seeded randomness as an argument: the SplitMix64 finaliser and a small generator on top of it.
// Thread-safety: mix64 is pure; an Rng belongs to one thread at a time.
// Ownership: values.
#pragma once

#include <cstdint>

namespace headrace {

// GCC and clang have it on every 64-bit target; only -Wpedantic minds.
__extension__ typedef unsigned __int128 uint128;

inline constexpr std::uint64_t kGoldenGamma = 0x9E3779B97F4A7C15;

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014; variant 13 of Stafford's mixers).
constexpr std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// A generator for jitter and tests. Sample order never uses it: that has keys of its own.
class Rng {
 public:
  explicit constexpr Rng(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() { return mix64(state_ += kGoldenGamma); }
  // Uniform in [0, n); the bias is below n / 2^64. n must not be zero.
  constexpr std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<uint128>(next()) * n) >> 64);
  }
  // Uniform in [0, 1) with 53 random bits.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace headrace
