#include "headrace/policy/retry.h"

#include <algorithm>

namespace headrace::policy {
namespace {

// Wrong bytes are fetched once more and then reported: a store that holds wrong bytes would serve
// them again at every attempt.
constexpr std::uint32_t kRefetchAttempts = 2;

Duration backoff_ceiling(Duration base, Duration cap, std::uint32_t attempts_made) {
  Duration ceiling = std::min(base, cap);
  for (std::uint32_t i = 1; i < attempts_made && ceiling < cap; ++i) {
    // Doubling stays below twice the cap, so it cannot overflow.
    ceiling = std::min(ceiling * 2, cap);
  }
  return ceiling;
}

}  // namespace

RetryClass retry_class(Code code) {
  switch (code) {
    case Code::kUnavailable: return RetryClass::kTransient;
    case Code::kThrottled: return RetryClass::kThrottle;
    case Code::kCorrupt: return RetryClass::kRefetch;
    case Code::kOk:
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kDenied:
    case Code::kDeadline:
    case Code::kCancelled:
    case Code::kExhausted:
    case Code::kUnimplemented:
    case Code::kInternal: return RetryClass::kNever;
  }
  return RetryClass::kNever;
}

std::uint32_t RetryBudget::cost(RetryClass of) {
  switch (of) {
    case RetryClass::kNever: return 0;
    case RetryClass::kThrottle: return kThrottleCost;
    case RetryClass::kTransient:
    case RetryClass::kRefetch: return kTransientCost;
  }
  return kTransientCost;
}

bool RetryBudget::take(RetryClass of) {
  const std::uint32_t wanted = cost(of);
  if (wanted > tokens_) return false;
  tokens_ -= wanted;
  return true;
}

void RetryBudget::refund(std::uint32_t last_cost) {
  const std::uint32_t back = std::clamp<std::uint32_t>(last_cost, 1, kTransientCost);
  tokens_ = std::min(kTokensMax, tokens_ + back);
}

std::string_view retry_stop_text(RetryStop stop) {
  switch (stop) {
    case RetryStop::kNo: return "is sent again";
    case RetryStop::kClass: return "not worth another attempt";
    case RetryStop::kAttempts: return "all attempts used up";
    case RetryStop::kDeadline: return "no time for another attempt before the deadline";
    case RetryStop::kBudget:
      return "too many requests to this store have failed for another attempt";
  }
  return "";
}

RetryDecision decide(const RetryOptions& options, RetryBudget& budget, const RetryFailure& failure,
                     double uniform) {
  const RetryClass of = retry_class(failure.code);
  if (of == RetryClass::kNever) return {.stop = RetryStop::kClass};
  const std::uint32_t attempts_max =
      of == RetryClass::kRefetch ? std::min(options.attempts, kRefetchAttempts) : options.attempts;
  if (failure.attempts_made >= attempts_max) return {.stop = RetryStop::kAttempts};

  const Duration base =
      of == RetryClass::kThrottle ? options.throttle_base : options.transient_base;
  const Duration ceiling = backoff_ceiling(base, options.cap, failure.attempts_made);
  const double part = static_cast<double>(ceiling.count()) * std::clamp(uniform, 0.0, 1.0);
  Duration wait(static_cast<Duration::rep>(part));
  // Someone who asks for a pause gets it whole; a pause past the deadline ends the request.
  if (failure.retry_after) wait = std::max(wait, *failure.retry_after);
  if (failure.deadline != kForever && wait >= failure.deadline - failure.now) {
    return {.stop = RetryStop::kDeadline};
  }
  if (!budget.take(of)) return {.stop = RetryStop::kBudget};
  return {.stop = RetryStop::kNo, .wait = wait, .cost = RetryBudget::cost(of)};
}

}  // namespace headrace::policy
