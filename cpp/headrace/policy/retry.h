// Retry: whether and when a failed request is sent again; a state machine without clock or chance.
// Thread-safety: decide() is pure; a RetryBudget belongs to one thread at a time (callers lock it).
// Ownership: values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "headrace/base/clock.h"
#include "headrace/base/status.h"

namespace headrace::policy {

// How a failure is treated; a property of its code alone (see retry_class).
enum class RetryClass : std::uint8_t {
  kNever,      // sending it again gives the same answer
  kTransient,  // may work at once: short waits
  kThrottle,   // the other side asks for less: long waits
  kRefetch,    // wrong bytes: asked for once more, in case only the transfer broke them
};
RetryClass retry_class(Code code);

struct RetryOptions {
  std::uint32_t attempts = 6;  // first one included
  // Full jitter: the wait is uniform in [0, min(cap, base * 2^(failed attempts - 1))). The bases,
  // cap and budget costs are those of botocore's standard mode of 2026.
  Duration transient_base = std::chrono::milliseconds(50);
  Duration throttle_base = std::chrono::seconds(1);
  Duration cap = std::chrono::seconds(20);
};

// A token bucket shared by the requests to one store: when everything fails, retries soon stop, so
// that a store in trouble sees little more than the first attempts.
class RetryBudget {
 public:
  static constexpr std::uint32_t kTokensMax = 500;
  static constexpr std::uint32_t kTransientCost = 14;
  static constexpr std::uint32_t kThrottleCost = 5;

  static std::uint32_t cost(RetryClass of);
  // Takes the cost of one retry; false, and nothing taken, when there is too little left.
  bool take(RetryClass of);
  // A request succeeded: gives back what its last retry took, at least one token.
  void refund(std::uint32_t last_cost);
  std::uint32_t tokens() const { return tokens_; }

 private:
  std::uint32_t tokens_ = kTokensMax;
};

enum class RetryStop : std::uint8_t { kNo, kClass, kAttempts, kDeadline, kBudget };
// Why there is no further attempt, for a message: "not retryable", "attempts used up", ...
std::string_view retry_stop_text(RetryStop stop);

struct RetryDecision {
  RetryStop stop = RetryStop::kNo;  // kNo: send it again after `wait`
  Duration wait{0};
  std::uint32_t cost = 0;  // tokens taken, to be handed to refund() after success

  bool is_retry() const { return stop == RetryStop::kNo; }
};

struct RetryFailure {
  Code code = Code::kUnavailable;
  std::uint32_t attempts_made = 1;
  // What the other side asked for (Retry-After); waited for in full when it is longer.
  std::optional<Duration> retry_after{};
  TimePoint now{};
  TimePoint deadline = kForever;
};

// `uniform` is a random number in [0, 1).
RetryDecision decide(const RetryOptions& options, RetryBudget& budget, const RetryFailure& failure,
                     double uniform);

}  // namespace headrace::policy
