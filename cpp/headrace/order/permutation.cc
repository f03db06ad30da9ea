// Eight rounds of x = x * odd + c (mod 2^k), x ^= x >> ceil(k/2), on the smallest k with 2^k >= n;
// values that land in [n, 2^k) go through all rounds again (cycle walking), which keeps it a
// bijection on [0, n) and takes fewer than two passes on average. The bulk form runs each pass over
// a block at a time, so that it vectorises, and gathers the values that walk into a shrinking list.
#include "headrace/order/permutation.h"

#include <algorithm>
#include <array>
#include <bit>

#include "headrace/base/check.h"

namespace headrace::order {
namespace {

// Inverse of an odd number modulo 2^64: Newton's iteration doubles the correct low bits, from the
// 3 that x itself has to 96.
std::uint64_t inverse_of_odd(std::uint64_t x) {
  std::uint64_t y = x;
  for (int i = 0; i < 5; ++i) y *= 2 - x * y;
  return y;
}

constexpr std::size_t kBlock = 256;

}  // namespace

Permutation::Permutation(Key key, std::uint64_t n) : n_(n) {
  if (n <= kStoredMax) {
    stored_ = {};
    for (std::uint64_t i = 0; i < n; ++i) stored_.forward[i] = static_cast<std::uint8_t>(i);
    fisher_yates(key, std::span<std::uint8_t>(stored_.forward, n));
    for (std::uint64_t i = 0; i < n; ++i)
      stored_.inverse[stored_.forward[i]] = static_cast<std::uint8_t>(i);
    return;
  }
  const int bits = static_cast<int>(std::bit_width(n - 1));
  mask_ = ~std::uint64_t{0} >> (64 - bits);
  shift_ = (bits + 1) / 2;
  mixer_ = {};
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    mixer_.multiply[round] = word(key, 2 * round) | 1;
    mixer_.add[round] = word(key, 2 * round + 1);
    mixer_.undo[round] = inverse_of_odd(mixer_.multiply[round]);
  }
}

std::uint64_t Permutation::once(std::uint64_t x) const {
  for (int round = 0; round < kRounds; ++round) {
    x = (x * mixer_.multiply[round] + mixer_.add[round]) & mask_;
    x ^= x >> shift_;
  }
  return x;
}

std::uint64_t Permutation::forward(std::uint64_t i) const {
  HR_CHECK(i < n_, "permuted index out of range");
  if (n_ <= kStoredMax) return stored_.forward[i];
  std::uint64_t x = once(i);
  while (x >= n_) x = once(x);
  return x;
}

std::uint64_t Permutation::inverse(std::uint64_t value) const {
  HR_CHECK(value < n_, "permuted value out of range");
  if (n_ <= kStoredMax) return stored_.inverse[value];
  std::uint64_t x = value;
  do {
    for (int round = kRounds - 1; round >= 0; --round) {
      x ^= x >> shift_;  // undoes itself: shift_ is at least half of the bits
      x = ((x - mixer_.add[round]) * mixer_.undo[round]) & mask_;
    }
  } while (x >= n_);
  return x;
}

void Permutation::fill(std::uint64_t first, std::span<std::uint64_t> out) const {
  HR_CHECK(first <= n_ && out.size() <= n_ - first, "permuted range out of range");
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = first + i;
  map(out);
}

void Permutation::map(std::span<std::uint64_t> values) const {
  if (n_ <= kStoredMax) {
    for (std::uint64_t& value : values) value = forward(value);
    return;
  }
  std::array<std::uint64_t, kBlock> walking;
  std::array<std::uint32_t, kBlock> place;
  for (std::size_t at = 0; at < values.size(); at += kBlock) {
    const auto block = values.subspan(at, std::min(kBlock, values.size() - at));
    pass(block);
    std::size_t left = 0;
    for (std::size_t i = 0; i < block.size(); ++i) {
      walking[left] = block[i];
      place[left] = static_cast<std::uint32_t>(i);
      left += block[i] >= n_ ? 1 : 0;
    }
    while (left != 0) {
      pass({walking.data(), left});
      std::size_t still = 0;
      for (std::size_t i = 0; i < left; ++i) {
        const std::uint64_t x = walking[i];
        block[place[i]] = x;
        walking[still] = x;
        place[still] = place[i];
        still += x >= n_ ? 1 : 0;
      }
      left = still;
    }
  }
}

void Permutation::pass(std::span<std::uint64_t> values) const {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t multiply = mixer_.multiply[round];
    const std::uint64_t add = mixer_.add[round];
    const std::uint64_t mask = mask_;
    const int shift = shift_;
    for (std::uint64_t& value : values) {
      const std::uint64_t x = (value * multiply + add) & mask;
      value = x ^ (x >> shift);
    }
  }
}

}  // namespace headrace::order
