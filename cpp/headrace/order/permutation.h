// A keyed permutation of 0 .. n-1 that is computed and not stored (rule R7), with its inverse.
// Thread-safety: immutable after construction.
// Ownership: a value of about 220 bytes, whatever n is.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/order/keys.h"

namespace headrace::order {

class Permutation {
 public:
  // Up to this many items a stored Fisher-Yates shuffle is used.
  static constexpr std::uint64_t kStoredMax = 64;

  // The identity of no items.
  Permutation() : Permutation(Key{}, 0) {}
  Permutation(Key key, std::uint64_t n);

  std::uint64_t size() const { return n_; }

  // i and the value must be below size().
  std::uint64_t forward(std::uint64_t i) const;
  std::uint64_t inverse(std::uint64_t value) const;

  // out[j] = forward(first + j); first + out.size() must not be above size().
  void fill(std::uint64_t first, std::span<std::uint64_t> out) const;
  // values[j] = forward(values[j]); the same function in bulk.
  void map(std::span<std::uint64_t> values) const;

 private:
  static constexpr int kRounds = 8;
  struct Mixer {
    std::uint64_t multiply[kRounds];
    std::uint64_t add[kRounds];
    std::uint64_t undo[kRounds];  // inverses of `multiply` modulo 2^64
  };
  struct Stored {
    std::uint8_t forward[kStoredMax];
    std::uint8_t inverse[kStoredMax];
  };

  std::uint64_t once(std::uint64_t x) const;
  // All rounds once, on every value.
  void pass(std::span<std::uint64_t> values) const;

  std::uint64_t n_;
  std::uint64_t mask_ = 0;  // 2^k - 1
  int shift_ = 0;           // ceil(k / 2)
  union {
    Mixer mixer_;
    Stored stored_;
  };
};

}  // namespace headrace::order
