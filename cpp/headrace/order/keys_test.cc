#include "headrace/order/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace headrace::order {
namespace {

TEST(Keys, DifferByPurposeEpochSeedAndName) {
  std::set<std::uint64_t> seen;
  for (const std::uint64_t seed : {0ULL, 1ULL, ~0ULL})
    for (const std::string name : {"", "web", "code"})
      for (const std::uint64_t epoch : {0ULL, 1ULL, 1ULL << 40})
        for (const std::string purpose : {"run", "rotate", "lanes"})
          seen.insert(KeySpace(seed, name).key(purpose, epoch).a);
  EXPECT_EQ(seen.size(), 81U);
}

TEST(Keys, WordsBelowABoundStayBelowItAndReachBothEnds) {
  const Key key = KeySpace(1, "").key("test", 0);
  for (const std::uint64_t n : {1ULL, 2ULL, 7ULL}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 200; ++i) seen.insert(below(key, i, n));
    EXPECT_EQ(seen.size(), n);
    EXPECT_LT(*seen.rbegin(), n);
  }
  EXPECT_EQ(below(key, 0, 0), 0U);
  EXPECT_EQ(sub(key, 3).a, word(key, 6));
  EXPECT_EQ(sub(key, 3).b, word(key, 7));
}

TEST(Keys, FisherYatesKeepsEveryItem) {
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  fisher_yates(Key{1, 2}, std::span<int>(items));
  EXPECT_EQ(std::set<int>(items.begin(), items.end()).size(), 100U);
  EXPECT_FALSE(std::is_sorted(items.begin(), items.end()));
  fisher_yates(Key{1, 2}, std::span<int>());
}

}  // namespace
}  // namespace headrace::order
