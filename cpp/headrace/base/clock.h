// Time as an argument: every stage that waits or stamps takes a Clock.
// Thread-safety: all clocks may be read from any thread; ManualClock may be advanced from any.
// Ownership: callers keep the clock alive for as long as what uses it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace headrace {

using Duration = std::chrono::nanoseconds;
// Monotonic; the origin is the clock's own, so points of two clocks do not compare.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

inline constexpr TimePoint kForever = TimePoint::max();

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  // Seconds since 1970 in UTC, for signatures and records; never for waiting.
  virtual std::int64_t unix_seconds() const = 0;
};

// The machine's monotonic clock; one object serves the whole process.
const Clock& steady_clock();

// Stands still until advanced: for tests and for runs in virtual time.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::int64_t unix_start = 1'700'000'000) : unix_start_(unix_start) {}

  TimePoint now() const override { return TimePoint(Duration(ns_.load())); }
  std::int64_t unix_seconds() const override { return unix_start_ + ns_.load() / 1'000'000'000; }
  void advance(Duration by) { ns_.fetch_add(by.count()); }
  void set(TimePoint to) { ns_.store(to.time_since_epoch().count()); }

 private:
  const std::int64_t unix_start_;
  std::atomic<std::int64_t> ns_{0};
};

}  // namespace headrace
