#include "headrace/policy/retry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "headrace/base/rng.h"

namespace headrace::policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Code kAllCodes[] = {Code::kOk,        Code::kInvalidArgument, Code::kNotFound,
                              Code::kDenied,    Code::kCorrupt,         Code::kUnavailable,
                              Code::kThrottled, Code::kDeadline,        Code::kCancelled,
                              Code::kExhausted, Code::kUnimplemented,   Code::kInternal};

TEST(RetryClass, AgreesWithTheCodeAboutWhatIsRetryable) {
  for (Code code : kAllCodes) {
    const RetryClass of = retry_class(code);
    if (code_is_retryable(code)) {
      EXPECT_NE(of, RetryClass::kNever) << code_name(code);
    } else {
      EXPECT_TRUE(of == RetryClass::kNever || of == RetryClass::kRefetch) << code_name(code);
    }
  }
}

// Every combination of code, attempt, pause, time left and chance: the four promises hold.
TEST(Decide, KeepsItsPromisesForEveryCombination) {
  const RetryOptions options;
  const TimePoint now{seconds(1000)};
  const Duration lefts[] = {milliseconds(0), milliseconds(1), milliseconds(40), seconds(1),
                            seconds(19),     seconds(21),     seconds(100)};
  const std::optional<Duration> pauses[] = {std::nullopt, milliseconds(0), milliseconds(700),
                                            seconds(30)};
  std::size_t retries = 0;
  for (Code code : kAllCodes) {
    for (std::uint32_t made = 1; made <= 40; ++made) {
      for (Duration left : lefts) {
        for (const auto& pause : pauses) {
          for (double uniform : {0.0, 0.25, 0.999999}) {
            RetryBudget budget;
            const RetryDecision decision = decide(options, budget,
                                                  {.code = code,
                                                   .attempts_made = made,
                                                   .retry_after = pause,
                                                   .now = now,
                                                   .deadline = now + left},
                                                  uniform);
            const RetryClass of = retry_class(code);
            if (!decision.is_retry()) {
              EXPECT_EQ(budget.tokens(), RetryBudget::kTokensMax);
              continue;
            }
            ++retries;
            EXPECT_NE(of, RetryClass::kNever);
            EXPECT_LT(made, of == RetryClass::kRefetch ? 2U : options.attempts);
            EXPECT_LT(decision.wait, left);
            EXPECT_GE(decision.wait, pause.value_or(Duration(0)));
            EXPECT_LE(decision.wait, std::max(options.cap, pause.value_or(Duration(0))));
            EXPECT_EQ(budget.tokens() + decision.cost, RetryBudget::kTokensMax);
          }
        }
      }
    }
  }
  EXPECT_GT(retries, 100U);
}

TEST(Decide, WaitsAreSpreadOverTheWholeIntervalAndDouble) {
  RetryOptions options;
  options.attempts = 20;
  Rng rng(7);
  Duration ceiling = options.transient_base;
  for (std::uint32_t made = 1; made < 12; ++made) {
    Duration least = seconds(100);
    Duration most{0};
    for (int i = 0; i < 2000; ++i) {
      RetryBudget budget;
      const auto decision =
          decide(options, budget, {.code = Code::kUnavailable, .attempts_made = made, .now = {}},
                 rng.uniform());
      ASSERT_TRUE(decision.is_retry());
      least = std::min(least, decision.wait);
      most = std::max(most, decision.wait);
    }
    EXPECT_LT(least, ceiling / 50);
    EXPECT_GT(most, ceiling - ceiling / 50);
    EXPECT_LE(most, ceiling);
    ceiling = std::min(ceiling * 2, options.cap);
  }
}

TEST(Decide, HonoursRetryAfterButNeverPastTheDeadline) {
  RetryBudget budget;
  RetryFailure failure{.code = Code::kThrottled,
                       .attempts_made = 1,
                       .retry_after = seconds(5),
                       .now = TimePoint{seconds(1)},
                       .deadline = TimePoint{seconds(7)}};
  EXPECT_EQ(decide({}, budget, failure, 0.0).wait, seconds(5));
  failure.deadline = TimePoint{seconds(6)};
  EXPECT_EQ(decide({}, budget, failure, 0.0).stop, RetryStop::kDeadline);
}

TEST(RetryBudget, AStormOfFailuresEndsAndSuccessesRefillIt) {
  RetryBudget budget;
  std::uint32_t retries = 0;
  while (decide({}, budget, {.code = Code::kUnavailable, .attempts_made = 1, .now = {}}, 0.5)
             .is_retry()) {
    ++retries;
  }
  EXPECT_EQ(retries, RetryBudget::kTokensMax / RetryBudget::kTransientCost);
  EXPECT_EQ(
      decide({}, budget, {.code = Code::kUnavailable, .attempts_made = 1, .now = {}}, 0.5).stop,
      RetryStop::kBudget);
  for (int i = 0; i < 2000; ++i) budget.refund(0);
  EXPECT_EQ(budget.tokens(), RetryBudget::kTokensMax);
  ASSERT_TRUE(budget.take(RetryClass::kTransient));
  budget.refund(RetryBudget::kTransientCost);
  EXPECT_EQ(budget.tokens(), RetryBudget::kTokensMax);
}

// A model run: clients of a store that answers one request in ten; the extra load stays bounded.
TEST(RetryBudget, BoundsTheExtraLoadOfABrokenStore) {
  Rng rng(11);
  RetryBudget budget;
  std::uint64_t sent = 0;
  constexpr std::uint64_t kRequests = 20000;
  for (std::uint64_t request = 0; request < kRequests; ++request) {
    std::uint32_t last_cost = 0;
    for (std::uint32_t made = 1;; ++made) {
      ++sent;
      if (rng.uniform() < 0.1) {
        budget.refund(last_cost);
        break;
      }
      const auto decision =
          decide({}, budget, {.code = Code::kUnavailable, .attempts_made = made, .now = {}},
                 rng.uniform());
      if (!decision.is_retry()) break;
      last_cost = decision.cost;
    }
  }
  EXPECT_LT(sent, kRequests * 12 / 10);
}

TEST(Decide, ZeroOrOneAttemptNeverRetries) {
  for (std::uint32_t attempts : {0U, 1U}) {
    RetryBudget budget;
    RetryOptions options;
    options.attempts = attempts;
    EXPECT_EQ(decide(options, budget, {.code = Code::kUnavailable, .now = {}}, 0.0).stop,
              RetryStop::kAttempts);
  }
}

}  // namespace
}  // namespace headrace::policy
