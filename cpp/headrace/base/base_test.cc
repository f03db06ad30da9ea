#include <gtest/gtest.h>

#include <limits>

#include "headrace/base/bytes.h"
#include "headrace/base/clock.h"
#include "headrace/base/rng.h"
#include "headrace/base/sha256.h"
#include "headrace/base/status.h"

namespace headrace {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return invalid_argument("odd: " + std::to_string(n));
  return n / 2;
}

Result<int> quarter(int n) {
  HR_ASSIGN(const int h, half(n));
  HR_ASSIGN(const int q, half(h));
  return q;
}

Status check_even(int n) {
  HR_TRY(half(n).status());
  return Status::ok();
}

TEST(Status, IsOnePointerPairAndOkByDefault) {
  EXPECT_TRUE(Status().is_ok());
  EXPECT_EQ(Status().to_string(), "ok");
  EXPECT_TRUE(check_even(4).is_ok());
}

TEST(Status, CarriesCodeAndContextOutermostFirst) {
  const Status status = corrupt("offset 12 is past the end").with_context("shard.00003.mds");
  EXPECT_EQ(status.to_string(), "corrupt: shard.00003.mds: offset 12 is past the end");
  EXPECT_TRUE(Status().with_context("anything").is_ok());
}

TEST(Status, OnlyUnavailableAndThrottledMayBeTriedAgain) {
  for (int c = 0; c <= static_cast<int>(Code::kInternal); ++c) {
    const Code code = static_cast<Code>(c);
    EXPECT_EQ(code_is_retryable(code), code == Code::kUnavailable || code == Code::kThrottled);
    EXPECT_NE(code_name(code), "unknown");
  }
}

TEST(Result, MacrosPassFailureThrough) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(quarter(6).status().message(), "odd: 3");
  EXPECT_EQ(check_even(3).message(), "odd: 3");
}

TEST(ResultDeathTest, ValueOfFailureAborts) {
  EXPECT_DEATH((void)half(1).value(), "value\\(\\) of a failed Result: invalid_argument: odd: 1");
}

TEST(Bytes, LoadsAndStoresLittleEndian) {
  std::string text;
  append_le<std::uint32_t>(text, 0x04030201);
  EXPECT_EQ(text, std::string("\x01\x02\x03\x04"));
  EXPECT_EQ(load_le<std::uint16_t>(as_bytes(text).data() + 1), 0x0302);
  EXPECT_EQ(to_hex(as_bytes(text)), "01020304");
}

TEST(Bytes, CheckedArithmeticSeesOverflow) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_mul(kMax, 2), std::nullopt);
  EXPECT_EQ(checked_mul(3, 5), 15U);
}

// Vectors of FIPS 180-4 and RFC 4231.
TEST(Sha256, MatchesPublishedVectors) {
  EXPECT_EQ(to_hex(sha256(as_bytes("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 hash;
  hash.update(as_bytes("a"));
  hash.update(as_bytes("bc"));
  EXPECT_EQ(hash.finish(), sha256(as_bytes("abc")));
  EXPECT_EQ(to_hex(hmac_sha256(as_bytes("Jefe"), as_bytes("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

// First outputs of the reference SplitMix64 for seed 1234567.
TEST(Rng, MatchesReferenceSplitMix64) {
  Rng rng(1234567);
  EXPECT_EQ(rng.next(), 6457827717110365317U);
  EXPECT_EQ(rng.next(), 3203168211198807973U);
  EXPECT_EQ(rng.next(), 9817491932198370423U);
}

TEST(Rng, BelowAndUniformStayInRange) {
  Rng rng(7);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LT(rng.below(3), 3U);
    const double u = rng.uniform();
    EXPECT_TRUE(u >= 0.0 && u < 1.0);
  }
}

TEST(ManualClock, MovesOnlyWhenTold) {
  ManualClock clock(100);
  const TimePoint start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(std::chrono::seconds(3));
  EXPECT_EQ(clock.now() - start, std::chrono::seconds(3));
  EXPECT_EQ(clock.unix_seconds(), 103);
}

TEST(SteadyClock, DoesNotRunBackwards) {
  const TimePoint a = steady_clock().now();
  const TimePoint b = steady_clock().now();
  EXPECT_GE(b, a);
}

}  // namespace
}  // namespace headrace
