#include "headrace/loader/sample_set.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace headrace::loader {
namespace {

std::vector<std::uint64_t> ordinals(const SampleSet& set) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = 0; i < set.size(); ++i) out.push_back(set.at(i).ordinal);
  return out;
}

TEST(SampleSet, FindsShardsPastEmptyOnes) {
  const SampleSet all = SampleSet::all({0, 2, 0, 0, 3, 0});
  ASSERT_EQ(all.size(), 5U);
  EXPECT_TRUE(all.is_all());
  EXPECT_EQ(all.at(0).shard, 1U);
  EXPECT_EQ(all.at(1).sample, 1U);
  EXPECT_EQ(all.at(2).shard, 4U);
  EXPECT_EQ(all.at(4).sample, 2U);
  EXPECT_EQ(all.at(4, 1).ordinal, 3U);
}

TEST(SampleSet, SelectKeepsOrderAndRepeatsAndNamesBadIndices) {
  const SampleSet all = SampleSet::all({3, 4});
  const SampleSet picked = *all.select({5, 0, 1, 5});
  EXPECT_EQ(ordinals(picked), (std::vector<std::uint64_t>{5, 0, 1, 5}));
  EXPECT_EQ(picked.run_sizes(), (std::vector<std::uint64_t>{1, 2, 1}));
  EXPECT_EQ(picked.at(1, 1).ordinal, 1U);
  EXPECT_EQ(ordinals(*picked.select({3, 1})), (std::vector<std::uint64_t>{5, 0}));
  const auto bad = all.select({0, 7});
  EXPECT_EQ(bad.status().code(), Code::kInvalidArgument);
  EXPECT_NE(bad.status().message().find("index 7"), std::string::npos);
}

TEST(SampleSet, TakeIsAPrefix) {
  const SampleSet all = SampleSet::all({3, 4});
  EXPECT_EQ(ordinals(all.take(4)), (std::vector<std::uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(all.take(4).run_sizes(), (std::vector<std::uint64_t>{3, 1}));
  EXPECT_TRUE(all.take(7).is_all());
  EXPECT_EQ(all.take(0).size(), 0U);
}

TEST(SampleSet, SplitIsCompleteDisjointAndStableUnderGrowth) {
  const SampleSet all = SampleSet::all({500, 500});
  const auto [a, b] = all.split(0.9, 7);
  auto both = ordinals(a);
  const auto rest = ordinals(b);
  both.insert(both.end(), rest.begin(), rest.end());
  std::sort(both.begin(), both.end());
  EXPECT_EQ(both, ordinals(all));
  // 900 expected with a standard deviation of 9.5; the seed is fixed, so this cannot flake.
  EXPECT_NEAR(static_cast<double>(a.size()), 900.0, 40.0);
  const auto grown = SampleSet::all({500, 500, 100}).split(0.9, 7).first;
  EXPECT_EQ(ordinals(grown.take(a.size())), ordinals(a));
  EXPECT_NE(ordinals(all.split(0.9, 8).first), ordinals(a));
  EXPECT_EQ(all.split(1.0, 7).second.size(), 0U);
  EXPECT_EQ(all.split(0.0, 7).first.size(), 0U);
}

TEST(SampleSet, FingerprintTellsChoicesApart) {
  const SampleSet all = SampleSet::all({3, 4});
  EXPECT_EQ(all.fingerprint(), "");
  EXPECT_NE(all.take(2).fingerprint(), all.take(3).fingerprint());
  EXPECT_EQ(all.take(2).fingerprint(), all.select({0, 1})->fingerprint());
}

}  // namespace
}  // namespace headrace::loader
