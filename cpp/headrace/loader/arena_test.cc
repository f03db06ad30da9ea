#include "headrace/loader/arena.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace headrace::loader {
namespace {

TEST(Arena, NeverLeasesMoreThanTheBudget) {
  Arena arena(1 << 20);
  std::vector<Lease> leases;
  while (auto lease = arena.try_lease(100'000)) leases.push_back(std::move(*lease));
  EXPECT_GE(leases.size(), 9U);
  EXPECT_LE(arena.usage().leased, 1U << 20);
  EXPECT_FALSE(arena.try_lease(2 << 20).has_value());
  leases.pop_back();
  EXPECT_TRUE(arena.try_lease(100'000).has_value());
}

TEST(Arena, ReusesTheSamePagesForSizesOfOneClass) {
  Arena arena(64 << 20);
  std::byte* first = arena.try_lease(3'000'000)->bytes().data();
  EXPECT_EQ(arena.try_lease(3'010'000)->bytes().data(), first);
}

TEST(Arena, GivesWarmBlocksUpForABlockOfAnotherSize) {
  Arena arena(8 << 20);
  { const auto a = arena.try_lease(5 << 20); }
  const auto b = arena.try_lease(7 << 20);
  ASSERT_TRUE(b.has_value());
  EXPECT_EQ(b->size(), std::size_t{7} << 20);
  b->bytes()[b->size() - 1] = std::byte{1};
}

TEST(Arena, LeasesOutliveTheArenaAndMayReturnOnAnyThread) {
  std::atomic<int> calls = 0;
  std::optional<Lease> kept;
  {
    Arena arena(1 << 20);
    arena.set_on_release([&] { ++calls; });
    { const auto lease = arena.try_lease(10); }
    EXPECT_EQ(calls, 1);
    kept = arena.try_lease(4096);
  }
  kept->bytes()[0] = std::byte{7};
  std::thread([lease = std::move(*kept)]() mutable { lease.reset(); }).join();
  EXPECT_EQ(calls, 1);
}

TEST(Arena, CountsWhatIsLeased) {
  Arena arena(1 << 20);
  {
    const auto a = arena.try_lease(1);
    const auto b = arena.try_lease(9000);
    EXPECT_EQ(arena.usage().leases, 2U);
    EXPECT_EQ(arena.usage().leased, 4096U + 12288U);
  }
  EXPECT_EQ(arena.usage().leased, 0U);
  EXPECT_EQ(arena.usage().leased_peak, 4096U + 12288U);
}

}  // namespace
}  // namespace headrace::loader
