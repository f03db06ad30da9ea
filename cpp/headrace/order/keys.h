// Keys of the run order (rule R0): every random decision has a key of its own, made by hashing.
// Thread-safety: pure functions and immutable values.
// Ownership: values.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "headrace/base/rng.h"
#include "headrace/base/sha256.h"

namespace headrace::order {

struct Key {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  friend bool operator==(const Key&, const Key&) = default;
};

// The i-th 64-bit word of an endless stream that belongs to the key.
constexpr std::uint64_t word(Key key, std::uint64_t i) {
  return mix64(mix64(key.a + (i + 1) * kGoldenGamma) ^ key.b);
}

// The i-th key below another key.
constexpr Key sub(Key key, std::uint64_t i) { return {word(key, 2 * i), word(key, 2 * i + 1)}; }

// Uniform in [0, n) up to a bias of n / 2^64; 0 when n is 0.
constexpr std::uint64_t below(Key key, std::uint64_t i, std::uint64_t n) {
  return static_cast<std::uint64_t>((static_cast<uint128>(word(key, i)) * n) >> 64);
}

// Shuffles `items` in place, last place first.
template <typename T>
void fisher_yates(Key key, std::span<T> items) {
  for (std::uint64_t i = items.size(); i-- > 1;) std::swap(items[i], items[below(key, i, i + 1)]);
}

// What all keys of one source of one run have in common.
class KeySpace {
 public:
  // The name is empty outside mixtures.
  KeySpace(std::uint64_t seed, std::string_view source_name);

  // `purpose` is at most 16 ASCII bytes; keys that serve the whole run use epoch 0.
  Key key(std::string_view purpose, std::uint64_t epoch) const;

 private:
  std::uint64_t seed_;
  Sha256Digest name_digest_;
};

}  // namespace headrace::order
