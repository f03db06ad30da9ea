#include "headrace/order/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace headrace::order {
namespace {

Key test_key(std::uint64_t i) { return {mix64(i + 1), mix64(i + 77)}; }

TEST(Permutation, IsABijectionWithItsInverseForEverySmallSize) {
  for (std::uint64_t n = 1; n <= 600; ++n) {
    const Permutation pi(test_key(n), n);
    std::vector<bool> seen(n, false);
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t x = pi.forward(i);
      ASSERT_LT(x, n);
      ASSERT_FALSE(seen[x]) << "n " << n << ", value " << x;
      seen[x] = true;
      ASSERT_EQ(pi.inverse(x), i);
    }
  }
}

TEST(Permutation, FillEqualsForwardAcrossSizesAndOffsets) {
  for (const std::uint64_t n :
       {1ULL, 2ULL, 63ULL, 64ULL, 65ULL, 127ULL, 129ULL, 1000ULL, 1025ULL, 70001ULL,
        (1ULL << 32) + 5, 1ULL << 33, 1'000'000'000'000ULL, (1ULL << 48) - 1}) {
    const Permutation pi(test_key(n), n);
    for (const std::uint64_t want : {1ULL, 17ULL, 255ULL, 256ULL, 777ULL}) {
      const std::uint64_t count = std::min<std::uint64_t>(want, n);
      for (const std::uint64_t first : {std::uint64_t{0}, (n - count) / 2, n - count}) {
        std::vector<std::uint64_t> out(count);
        pi.fill(first, out);
        for (std::uint64_t i = 0; i < count; ++i) {
          ASSERT_EQ(out[i], pi.forward(first + i)) << "n " << n << ", i " << first + i;
          ASSERT_LT(out[i], n);
          ASSERT_EQ(pi.inverse(out[i]), first + i);
        }
      }
    }
  }
}

// Pearson's statistic over (place, value) pairs, many keys: 4 standard deviations around its mean.
TEST(Permutation, PutsEveryItemEverywhereEquallyOften) {
  for (const std::uint64_t n : {5ULL, 64ULL, 65ULL, 100ULL}) {
    constexpr std::uint64_t kKeys = 20000;
    std::vector<std::uint32_t> hits(n * n);
    for (std::uint64_t k = 0; k < kKeys; ++k) {
      const Permutation pi(test_key(k * 1000 + n), n);
      for (std::uint64_t i = 0; i < n; ++i) ++hits[i * n + pi.forward(i)];
    }
    const double expected = static_cast<double>(kKeys) / static_cast<double>(n);
    double chi = 0;
    for (const std::uint32_t h : hits) chi += (h - expected) * (h - expected) / expected;
    const double freedom = static_cast<double>((n - 1) * (n - 1));
    EXPECT_NEAR(chi, freedom, 4 * std::sqrt(2 * freedom)) << "n " << n;
  }
}

}  // namespace
}  // namespace headrace::order
