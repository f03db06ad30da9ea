#include "headrace/obs/metrics.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "headrace/obs/log.h"

namespace headrace::obs {
namespace {

TEST(Metrics, FindsTheSameInstrumentByName) {
  Metrics metrics;
  metrics.counter("a_total").add(2);
  metrics.counter("a_total").add();
  EXPECT_EQ(metrics.counters().at("a_total"), 3U);
}

TEST(Metrics, CountsEveryAddOfManyThreads) {
  Metrics metrics;
  Counter& counter = metrics.counter("n");
  Histogram& histogram = metrics.histogram("h");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < 1000; ++i) {
        counter.add();
        histogram.record(i);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 4000U);
  EXPECT_EQ(metrics.histograms().at("h").count, 4000U);
  EXPECT_EQ(metrics.histograms().at("h").sum, 4U * 999U * 1000U / 2U);
  EXPECT_EQ(metrics.histograms().at("h").max, 999U);
}

TEST(Histogram, QuantileIsRightToAFactorOfTwo) {
  Histogram histogram;
  EXPECT_EQ(histogram.snapshot().quantile(0.5), 0U);
  for (std::uint64_t i = 1; i <= 1000; ++i) histogram.record(i);
  const auto snapshot = histogram.snapshot();
  EXPECT_EQ(snapshot.quantile(0.5), 511U);
  EXPECT_EQ(snapshot.quantile(1.0), 1000U);
  histogram.record(~std::uint64_t{0});
  EXPECT_EQ(histogram.snapshot().quantile(1.0), ~std::uint64_t{0});
}

TEST(Log, AnEmptySinkDropsAndASinkReceives) {
  log(LogSink(), Level::kError, "x", "nobody listens");
  std::string seen;
  log([&](Level, std::string_view event, std::string_view) { seen = event; }, Level::kInfo,
      "store.retry", "again");
  EXPECT_EQ(seen, "store.retry");
}

}  // namespace
}  // namespace headrace::obs
