// Two small helpers of the run order: division by a fixed number, and search in a prefix sum.
// Thread-safety: immutable after construction.
// Ownership: values; a PrefixIndex owns its table.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "headrace/base/rng.h"

namespace headrace::order {

// x div d and x mod d for a fixed d >= 1 with one multiplication. With m = (2^64 - 1) div d the
// estimate (x * m) div 2^64 is the quotient or one less, because 2^64 - m * d <= d.
class Divider {
 public:
  explicit Divider(std::uint64_t d) : d_(d), m_(~std::uint64_t{0} / d) {}

  std::uint64_t divisor() const { return d_; }
  std::uint64_t div(std::uint64_t x) const {
    const auto estimate = static_cast<std::uint64_t>((uint128{x} * m_) >> 64);
    return estimate + (x - estimate * d_ >= d_ ? 1 : 0);
  }

 private:
  std::uint64_t d_;
  std::uint64_t m_;
};

// starts[0] = 0 <= starts[1] <= ... <= starts.back() = total: which interval holds a position. A
// table with about one entry an interval narrows the search, which is then short unless sizes
// differ wildly.
class PrefixIndex {
 public:
  PrefixIndex() = default;
  explicit PrefixIndex(std::vector<std::uint64_t> starts) : starts_(std::move(starts)) {
    const std::uint64_t intervals = starts_.size() - 1;
    while ((total() >> shift_) > intervals) ++shift_;
    const std::uint64_t buckets = (total() >> shift_) + 2;
    bucket_.reserve(buckets);
    std::uint64_t at = 0;
    for (std::uint64_t b = 0; b < buckets; ++b) {
      while (at + 1 < intervals && starts_[at + 1] <= (b << shift_)) ++at;
      bucket_.push_back(static_cast<std::uint32_t>(at));
    }
  }

  std::uint64_t intervals() const { return starts_.size() - 1; }
  std::uint64_t total() const { return starts_.back(); }
  std::uint64_t start(std::uint64_t i) const { return starts_[i]; }
  std::uint64_t size(std::uint64_t i) const { return starts_[i + 1] - starts_[i]; }

  // The interval that holds `position` < total(): the last one that starts at or before it, which
  // is never an empty one.
  std::uint64_t find(std::uint64_t position) const {
    const std::uint64_t b = position >> shift_;
    std::uint64_t low = bucket_[b];
    std::uint64_t high = std::uint64_t{bucket_[b + 1]} + 1;  // starts_[high] > position
    while (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (starts_[middle] <= position)
        low = middle;
      else
        high = middle;
    }
    return low;
  }

 private:
  std::vector<std::uint64_t> starts_ = {0};
  std::vector<std::uint32_t> bucket_;
  int shift_ = 0;
};

}  // namespace headrace::order
