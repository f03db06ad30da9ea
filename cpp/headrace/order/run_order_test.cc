#include "headrace/order/run_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "headrace/base/rng.h"
#include "headrace/order/lookup.h"
#include "headrace/order/random_data.h"

namespace headrace::order {
namespace {

using Sizes = std::vector<std::uint64_t>;

// Everything that must hold for one epoch of any order.
void check_epoch(const TestData& data, std::uint64_t epoch) {
  const RunOrder order = data.make();
  const std::uint64_t n = order.samples();
  ASSERT_EQ(n, data.samples());
  std::vector<Placement> all(n);
  order.fill(epoch * n, all);
  std::vector<bool> seen(n, false);
  for (std::uint64_t g = 0; g < n; ++g) {
    const Placement at = all[g];
    ASSERT_LT(at.ordinal, n);
    ASSERT_FALSE(seen[at.ordinal]) << "sample " << at.ordinal << " comes twice";
    seen[at.ordinal] = true;
    ASSERT_EQ(order.sample_at(epoch * n + g), at);
    ASSERT_EQ(order.locate(at.ordinal), at);
    ASSERT_EQ(order.position_of(at.ordinal, epoch), epoch * n + g);
    ASSERT_LT(at.sample, data.shards[at.shard]);
  }
}

// Pieces tile the data set, and every sample of a piece names that piece.
void check_pieces(const TestData& data, std::uint64_t epoch) {
  const RunOrder order = data.make();
  const std::uint64_t n = order.samples();
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> pieces;
  std::uint64_t covered = 0;
  for (std::uint64_t t = epoch * n; t < (epoch + 1) * n; ++t) {
    const Placement at = order.sample_at(t);
    const Piece piece = order.chunk_at(t);
    ASSERT_EQ(piece.shard, at.shard);
    ASSERT_LE(piece.first, at.sample);
    ASSERT_LT(at.sample, piece.first + piece.count);
    ASSERT_LE(piece.first + piece.count, data.shards[at.shard]);
    ASSERT_TRUE(data.spec.layout == Layout::kUnit || piece.count <= data.spec.chunk_samples);
    const auto [known, is_new] = pieces.insert({{piece.shard, piece.first}, piece.count});
    ASSERT_EQ(known->second, piece.count);
    if (is_new) covered += piece.count;
  }
  ASSERT_EQ(covered, n);
}

TEST(RunOrder, IsAPermutationWithItsInverseAndBulkForEverySmallCase) {
  std::uint64_t epochs = 0;
  for (std::uint64_t n = 1; n <= 70; ++n)
    for (const std::uint64_t chunk : {1U, 3U, 64U})
      for (const std::uint64_t window : {1U, 2U, 5U, 8U, 1000U})
        for (const Layout layout : {Layout::kChunk, Layout::kUnit}) {
          TestData data;
          data.shards = {n / 3, 0, n - n / 3};
          data.spec = {.seed = n,
                       .lanes = 1,
                       .chunk_samples = chunk,
                       .window_samples = window,
                       .layout = layout,
                       .source_name = ""};
          check_epoch(data, epochs++ % 3);
        }
  EXPECT_EQ(epochs, 2100U);
}

TEST(RunOrder, IsAPermutationWithItsInverseAndBulkWithManyLanes) {
  for (const std::uint64_t n : {511U, 512U, 513U, 1023U, 1024U, 1025U, 2500U, 16421U})
    for (const std::uint32_t lanes : {2U, 4U, 64U})
      for (const std::uint64_t window : {std::uint64_t{lanes}, std::uint64_t{777}})
        for (const Layout layout : {Layout::kChunk, Layout::kUnit}) {
          TestData data;
          data.shards = {n / 5, n / 7, 0, 1, n - n / 5 - n / 7 - 1};
          data.spec = {.seed = n,
                       .lanes = lanes,
                       .chunk_samples = 7,
                       .window_samples = window,
                       .layout = layout,
                       .source_name = ""};
          check_epoch(data, 1);
          check_pieces(data, 2);
        }
}

TEST(RunOrder, IsAPermutationWithItsInverseAndBulkForRandomData) {
  EXPECT_TRUE(rc::check([] {
    const TestData data = any_data(3000);
    check_epoch(data, pick(0, 5));
    RC_ASSERT(!testing::Test::HasFatalFailure());
  }));
}

TEST(RunOrder, PiecesTileRandomDataAndAgreeWithTheirSamples) {
  EXPECT_TRUE(rc::check([] {
    const TestData data = any_data(2000);
    check_pieces(data, pick(0, 5));
    RC_ASSERT(!testing::Test::HasFatalFailure());
  }));
}

TEST(RunOrder, FillFromAnywhereAcrossEpochsEqualsOneByOne) {
  EXPECT_TRUE(rc::check([] {
    const TestData data = any_data(4000);
    const RunOrder order = data.make();
    const auto t = pick(0, 3 * order.samples());
    std::vector<Placement> out(pick(0, 2 * order.samples()));
    order.fill(t, out);
    std::vector<std::uint32_t> lanes(out.size());
    order.fill_lanes(t, lanes);
    for (std::uint64_t j = 0; j < out.size(); ++j) {
      RC_ASSERT(out[j] == order.sample_at(t + j));
      RC_ASSERT(lanes[j] == order.lane_of(t + j));
    }
  }));
}

TEST(RunOrder, InverseHoldsForATrillionSamples) {
  for (const std::uint32_t lanes : {1U, 64U, 16384U}) {
    OrderSpec spec{.seed = 3,
                   .lanes = lanes,
                   .chunk_samples = 1000,
                   .window_samples = 1U << 24,
                   .source_name = ""};
    const auto order = RunOrder::make(spec, Sizes(1000, 1'000'000'007));
    ASSERT_TRUE(order.is_ok());
    const std::uint64_t n = order->samples();
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const std::uint64_t t = mix64(i) % n + n * (i % 4);
      const Placement at = order->sample_at(t);
      ASSERT_EQ(order->position_of(at.ordinal, i % 4), t);
      const Piece piece = order->chunk_at(t);
      ASSERT_TRUE(piece.first <= at.sample && at.sample < piece.first + piece.count);
    }
    std::vector<Placement> bulk(5000);
    order->fill(n - 2500, bulk);
    for (std::uint64_t j = 0; j < bulk.size(); ++j)
      ASSERT_EQ(bulk[j], order->sample_at(n - 2500 + j));
  }
}

// A lane owns the same samples in every epoch, and every full round visits each lane once.
TEST(RunOrder, LanesKeepTheirSamplesAndEveryRoundVisitsAllOfThem) {
  TestData data;
  data.shards = Sizes(40, 113);
  data.spec = {
      .seed = 8, .lanes = 16, .chunk_samples = 5, .window_samples = 640, .source_name = ""};
  const RunOrder order = data.make();
  ASSERT_EQ(order.lanes(), 16U);
  const std::uint64_t n = order.samples();
  std::vector<std::uint32_t> lane_of_sample(n);
  std::set<std::vector<std::uint32_t>> round_orders;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::uint32_t> round;
    for (std::uint64_t g = 0; g < n; ++g) {
      const std::uint64_t t = epoch * n + g;
      std::uint32_t& lane = lane_of_sample[order.sample_at(t).ordinal];
      if (epoch == 0) lane = order.lane_of(t);
      ASSERT_EQ(lane, order.lane_of(t));
      if (g < 16) round.push_back(order.lane_of(t));
      ASSERT_TRUE(g < 16 || g >= n / 16 * 16 || order.lane_of(t) == round[g % 16]);
    }
    EXPECT_EQ(std::set<std::uint32_t>(round.begin(), round.end()).size(), 16U);
    round_orders.insert(round);
  }
  EXPECT_EQ(round_orders.size(), 4U) << "the order of lanes must be drawn anew every epoch";
}

// The reason for windows: within a lane, a sample's chunk is only needed inside one block of the
// lane or two neighbours.
TEST(RunOrder, AChunkIsFinishedWithinAboutTwoBlocks) {
  TestData data;
  data.shards = {100'000};
  data.spec = {
      .seed = 5, .lanes = 4, .chunk_samples = 16, .window_samples = 4096, .source_name = ""};
  const RunOrder order = data.make();
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> seen;
  for (std::uint64_t t = 0; t < order.samples(); ++t) {
    auto [entry, is_new] = seen.insert({order.chunk_at(t).first, {t, t}});
    entry->second.second = t;
  }
  for (const auto& [first, span] : seen) EXPECT_LE(span.second - span.first, 3U * 4096) << first;
}

TEST(RunOrder, SeedEpochAndNameChangeIt) {
  TestData data;
  data.shards = Sizes(10, 100);
  data.spec = {.seed = 1, .lanes = 2, .chunk_samples = 4, .window_samples = 200, .source_name = ""};
  const auto first = [](const TestData& d, std::uint64_t epoch) {
    const RunOrder order = d.make();
    std::vector<std::uint64_t> out;
    for (std::uint64_t g = 0; g < 50; ++g)
      out.push_back(order.sample_at(epoch * order.samples() + g).ordinal);
    return out;
  };
  std::set<std::vector<std::uint64_t>> orders = {first(data, 0), first(data, 1)};
  data.spec.seed = 2;
  orders.insert(first(data, 0));
  data.spec.source_name = "web";
  orders.insert(first(data, 0));
  EXPECT_EQ(orders.size(), 4U);
}

TEST(RunOrder, NotShufflingDeliversTheStoredOrder) {
  TestData data;
  data.shards = {3, 0, 5};
  data.spec.shuffle = false;
  data.spec.chunk_samples = 2;
  const RunOrder order = data.make();
  for (std::uint64_t t = 0; t < 24; ++t) {
    EXPECT_EQ(order.sample_at(t).ordinal, t % 8);
    EXPECT_EQ(order.lane_of(t), 0U);
  }
  EXPECT_EQ(order.lanes(), 1U);
  EXPECT_EQ(order.chunk_at(2), (Piece{0, 2, 1}));  // [2, 4) cut at the end of shard 0
  EXPECT_EQ(order.chunk_at(3), (Piece{2, 0, 1}));
  EXPECT_EQ(order.chunk_at(5), (Piece{2, 1, 2}));
}

TEST(RunOrder, ThreadsSeeOneOrderWhileEpochsAreDrawn) {
  TestData data;
  data.shards = Sizes(20, 501);
  data.spec = {.seed = 4, .lanes = 8, .chunk_samples = 9, .window_samples = 512, .source_name = ""};
  const RunOrder order = data.make();
  std::vector<Placement> expected(order.samples() * 8);
  data.make().fill(0, expected);
  std::vector<int> wrong(4, 0);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t k = 0; k < wrong.size(); ++k)
      threads.emplace_back([&, k] {
        for (std::uint64_t i = 0; i < 3000; ++i) {
          const std::uint64_t t = mix64(i * 4 + k) % expected.size();
          if (order.sample_at(t) != expected[t]) ++wrong[k];
        }
      });
  }
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(RunOrder, RefusesNonsenseAndNamesIt) {
  const auto error = [](OrderSpec spec, Sizes shards, std::vector<Sizes> units = {}) {
    const auto order = RunOrder::make(std::move(spec), std::move(shards), units);
    EXPECT_EQ(order.status().code(), Code::kInvalidArgument);
    return order.status().message();
  };
  using testing::HasSubstr;
  EXPECT_THAT(error({}, {}), HasSubstr("0 shards"));
  EXPECT_THAT(error({}, {0, 0}), HasSubstr("all empty"));
  EXPECT_THAT(error({}, {5, ~0ULL}), HasSubstr("shard 1"));
  EXPECT_THAT(error({.lanes = 0, .source_name = ""}, {5}), HasSubstr("try 1"));
  EXPECT_THAT(error({.lanes = 48, .source_name = ""}, {5}), HasSubstr("try 32"));
  EXPECT_THAT(error({.lanes = 1U << 31, .source_name = ""}, {5}), HasSubstr("try 16384"));
  EXPECT_THAT(error({.chunk_samples = 0, .source_name = ""}, {5}), HasSubstr("chunk"));
  EXPECT_THAT(error({.window_samples = 63, .source_name = ""}, {5}), HasSubstr("64 lanes"));
  EXPECT_THAT(error({.window_samples = ~0ULL, .source_name = ""}, {5}), HasSubstr("window"));
  EXPECT_THAT(error({.source_name = std::string(300, 'a')}, {5}), HasSubstr("256"));
  EXPECT_THAT(error({.source_name = "\xff"}, {5}), HasSubstr("UTF-8"));
  const OrderSpec units{.layout = Layout::kUnit, .source_name = ""};
  EXPECT_THAT(error(units, {5, 5}, {{5}}), HasSubstr("1 of 2 shards"));
  EXPECT_THAT(error(units, {5, 5}, {{5}, {6}}), HasSubstr("shard 1 hold more"));
  EXPECT_THAT(error(units, {5, 5}, {{5}, {1, 1}}), HasSubstr("3 samples fewer"));
}

TEST(ResolveOrder, DefaultsFollowFromTheDataAlone) {
  // 1000 samples of 50,000 bytes: 1 MiB holds 20 and 2 GiB 42,949.
  auto spec = resolve_order({}, 1000, 50'000'000);
  ASSERT_TRUE(spec.is_ok());
  EXPECT_EQ(spec->lanes, 64U);
  EXPECT_EQ(spec->chunk_samples, 20U);
  EXPECT_EQ(spec->window_samples, 42949U);
  // Samples larger than a chunk, and a window that must hold one chunk a lane.
  spec = resolve_order({}, 10, 10ULL << 30);
  ASSERT_TRUE(spec.is_ok());
  EXPECT_EQ(spec->chunk_samples, 1U);
  EXPECT_EQ(spec->window_samples, 64U);
  // Nothing stored counts as one byte a sample.
  spec = resolve_order({}, 10, 0);
  ASSERT_TRUE(spec.is_ok());
  EXPECT_EQ(spec->chunk_samples, 1U << 20);
}

TEST(ResolveOrder, TakesBytesOrSamplesAndRefusesNonsense) {
  OrderRequest request;
  request.chunk = Amount::samples(7);
  request.window = Amount::bytes(1 << 20);
  const auto spec = resolve_order(request, 1000, 1'000'000);
  ASSERT_TRUE(spec.is_ok());
  EXPECT_EQ(spec->chunk_samples, 7U);
  EXPECT_EQ(spec->window_samples, 1048U);
  request.chunk = Amount::bytes(1);  // less than a sample: one sample
  EXPECT_EQ(resolve_order(request, 1000, 1'000'000)->chunk_samples, 1U);

  const auto message = [](const OrderRequest& r, std::uint64_t samples) {
    const auto result = resolve_order(r, samples, samples * 100);
    EXPECT_EQ(result.status().code(), Code::kInvalidArgument);
    return result.status().message();
  };
  using testing::HasSubstr;
  EXPECT_THAT(message({}, 0), HasSubstr("without samples"));
  EXPECT_THAT(message({}, kSamplesMax + 1), HasSubstr("at most"));
  request = {};
  request.lanes = 1ULL << 40;
  EXPECT_THAT(message(request, 10), HasSubstr("power of two"));
  request = {};
  request.chunk = Amount::samples(0);
  EXPECT_THAT(message(request, 10), HasSubstr("chunk must be at least 1 sample"));
  request = {};
  request.window = Amount::bytes(100);
  EXPECT_THAT(message(request, 10), HasSubstr("smaller than the 64 lanes"));
}

TEST(Lookup, DividerEqualsDivision) {
  for (const std::uint64_t d : {1ULL, 2ULL, 3ULL, 7ULL, 64ULL, 1000ULL, (1ULL << 32) + 1,
                                1ULL << 48, (1ULL << 63) + 5, ~0ULL}) {
    const Divider divider(d);
    for (std::uint64_t i = 0; i < 200; ++i) {
      for (const std::uint64_t x : {mix64(i), mix64(i) >> 20, mix64(i) % d, i, d - 1 + i, ~i})
        ASSERT_EQ(divider.div(x), x / d) << x << " / " << d;
    }
  }
}

TEST(Lookup, PrefixIndexFindsTheIntervalOfEveryPosition) {
  for (const Sizes& sizes : {Sizes{1}, Sizes{0, 3, 0}, Sizes{1, 1000, 1, 0, 0, 1}, Sizes(50, 7),
                             Sizes{1, 1, 1, 1, 1, 1, 1, 1, 500}, Sizes{500, 1, 1, 0, 1}}) {
    Sizes starts = {0};
    for (const std::uint64_t size : sizes) starts.push_back(starts.back() + size);
    const PrefixIndex index(starts);
    for (std::uint64_t p = 0; p < index.total(); ++p) {
      const std::uint64_t i = index.find(p);
      ASSERT_LE(index.start(i), p);
      ASSERT_LT(p, index.start(i + 1));
    }
  }
}

}  // namespace
}  // namespace headrace::order
