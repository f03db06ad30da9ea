#include "headrace/order/deff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

#include "headrace/base/rng.h"

namespace headrace::order {
namespace {

constexpr std::uint64_t kBatch = 1024;
constexpr std::uint64_t kSamples = 1'000'000;

// 1,000 shards of 1,000 samples.
RunOrder order_of(std::uint32_t lanes, std::uint64_t chunk, std::uint64_t window,
                  std::uint64_t seed) {
  OrderSpec spec;
  spec.seed = seed;
  spec.lanes = lanes;
  spec.chunk_samples = chunk;
  spec.window_samples = window;
  return *RunOrder::make(spec, std::vector<std::uint64_t>(1000, 1000));
}

double measured(std::uint32_t lanes, std::uint64_t chunk, std::uint64_t window) {
  return measure_deff(order_of(lanes, chunk, window, 7), kBatch, 0, 2)->deff;
}

double predicted(std::uint32_t lanes, std::uint64_t chunk, std::uint64_t window) {
  return predicted_deff(order_of(lanes, chunk, window, 7), kBatch);
}

// Chunks as large as a shard straddle two, and the formula leaves out that neighbouring chunks then
// share a shard: its error is up to a seventh there.
TEST(Deff, MeasuredIsWithinTenPercentOfTheFormula) {
  for (const std::uint32_t lanes : {1U, 16U, 64U})
    for (const std::uint64_t window : {8192U, 32768U, 131072U})
      for (const std::uint64_t chunk : {16U, 64U, 1000U}) {
        const double error = chunk == 1000 ? 0.14 : 0.1;
        EXPECT_NEAR(measured(lanes, chunk, window) / predicted(lanes, chunk, window), 1.0, error)
            << lanes << " lanes, window " << window << ", chunk " << chunk;
      }
}

// In one lane, with chunks small against shard and block and blocks large against the batch, what
// is left of the formula is 1 + (G - 1)(q/W - q/N).
TEST(Deff, SmallChunksInOneLaneGiveTheSimpleFormula) {
  EXPECT_NEAR(predicted(1, 16, 131072), 1 + 1023 * (16.0 / 131072 - 16.0 / 1e6), 0.01);
  EXPECT_EQ(predicted(1, 16, 2 * kSamples), 1.0);
  EXPECT_EQ(predicted_deff(order_of(1, 16, 8192, 1), 1), 1.0);
}

TEST(Deff, LanesAreNeverCreditedWithMoreThanHalf) {
  DeffFacts facts;
  facts.batch = 64;
  facts.window = 4096;
  facts.samples = 4096;
  facts.lanes = 16;
  facts.shard = 1024;
  EXPECT_EQ(predicted_deff(facts), 0.5);
}

TEST(Deff, AnIdealShuffleMeasuresOneAndStoredOrderTheBatch) {
  const std::vector<std::uint64_t> shards(50, 200);
  DeffMeter ideal(shards, 100);
  std::vector<std::uint32_t> labels;
  for (std::uint32_t s = 0; s < 50; ++s) labels.insert(labels.end(), 200, s);
  Rng rng(1);
  for (int epoch = 0; epoch < 20; ++epoch) {
    for (std::uint64_t i = labels.size(); i-- > 1;) std::swap(labels[i], labels[rng.below(i + 1)]);
    for (const std::uint32_t s : labels) ideal.add(s);
  }
  EXPECT_EQ(ideal.batches(), 2000U);
  EXPECT_NEAR(ideal.deff(), 1.0, 0.03);

  // One shard a batch: the variance is that of a single draw, G times the ideal.
  OrderSpec stored;
  stored.shuffle = false;
  const RunOrder order = *RunOrder::make(stored, shards);
  const auto measure = measure_deff(order, 100, 0, 1);
  ASSERT_TRUE(measure.is_ok());
  EXPECT_NEAR(measure->deff, 100.0 * 9999 / 9900, 0.01);
  EXPECT_NEAR(predicted_deff(order, 100), 1 + 99 * (1 - 0.02), 1e-9);
}

TEST(Deff, PredictsTheUnitLayoutFromItsUnits) {
  OrderSpec spec;
  spec.layout = Layout::kUnit;
  spec.window_samples = 32768;
  const std::vector<std::uint64_t> shards(1000, 1000);
  EXPECT_EQ(predicted_deff(*RunOrder::make(spec, shards), kBatch), predicted(64, 1000, 32768));
  const std::vector<std::vector<std::uint64_t>> units(1000, std::vector<std::uint64_t>(10, 100));
  EXPECT_EQ(predicted_deff(*RunOrder::make(spec, shards, units), kBatch),
            predicted(64, 100, 32768));
}

TEST(Deff, RefusesWhatCannotBeMeasured) {
  using testing::HasSubstr;
  const RunOrder order = *RunOrder::make({}, {10, 20});
  EXPECT_THAT(measure_deff(order, 30, 0, 1).status().message(), HasSubstr("1 to 29"));
  EXPECT_THAT(measure_deff(order, 0, 0, 1).status().message(), HasSubstr("not 0"));
  EXPECT_THAT(measure_deff(order, 3, 0, 0).status().message(), HasSubstr("epochs"));
  const RunOrder single = *RunOrder::make({}, {10, 0});
  EXPECT_THAT(measure_deff(single, 3, 0, 1).status().message(), HasSubstr("only one"));
  EXPECT_TRUE(std::isnan(DeffMeter(std::vector<std::uint64_t>{5, 5}, 2).deff()));
}

// The table of docs/order.md:
//   headrace_order_test --gtest_also_run_disabled_tests --gtest_filter='*PrintTable'
TEST(Deff, DISABLED_PrintTable) {
  for (const std::uint64_t window : {8192U, 32768U, 131072U})
    for (const std::uint64_t chunk : {16U, 64U, 1000U})
      for (const std::uint32_t lanes : {1U, 16U, 64U})
        std::printf("| %7d | %4d | %2d | %6.2f | %6.2f |\n", static_cast<int>(window),
                    static_cast<int>(chunk), static_cast<int>(lanes),
                    predicted(lanes, chunk, window), measured(lanes, chunk, window));
}

}  // namespace
}  // namespace headrace::order
