// Counters and histograms, gathered in a Metrics object that is passed in and never global.
// Thread-safety: recording is one relaxed atomic operation from any thread; snapshots may be taken
// at any time.
// Ownership: Metrics owns its instruments; references from counter() and histogram() stay valid
// for as long as the Metrics object lives.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "headrace/base/mutex.h"

namespace headrace::obs {

class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// Powers of two of the recorded unit (nanoseconds, bytes): bucket b holds values of bit width b,
// so a quantile is right to a factor of two, which tells a stall from a hiccup.
class Histogram {
 public:
  static constexpr int kBuckets = 65;

  void record(std::uint64_t value) {
    buckets_[static_cast<std::size_t>(std::bit_width(value))].fetch_add(1,
                                                                        std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
    std::uint64_t seen = max_.load(std::memory_order_relaxed);
    while (value > seen && !max_.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {}
  }

  struct Snapshot {
    std::array<std::uint64_t, kBuckets> buckets{};
    std::uint64_t count = 0;
    std::uint64_t sum = 0;
    std::uint64_t max = 0;
    // The upper edge of the bucket that holds quantile `q` in [0, 1]; 0 when nothing was recorded.
    std::uint64_t quantile(double q) const;
  };
  Snapshot snapshot() const;

 private:
  std::array<std::atomic<std::uint64_t>, kBuckets> buckets_{};
  std::atomic<std::uint64_t> sum_{0};
  std::atomic<std::uint64_t> max_{0};
};

class Metrics {
 public:
  // Finds or makes the instrument of that name; look it up once and keep the reference.
  Counter& counter(std::string_view name) HR_EXCLUDES(mutex_);
  Histogram& histogram(std::string_view name) HR_EXCLUDES(mutex_);

  std::map<std::string, std::uint64_t> counters() const HR_EXCLUDES(mutex_);
  std::map<std::string, Histogram::Snapshot> histograms() const HR_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, Counter, std::less<>> counters_ HR_GUARDED_BY(mutex_);
  std::map<std::string, Histogram, std::less<>> histograms_ HR_GUARDED_BY(mutex_);
};

}  // namespace headrace::obs
