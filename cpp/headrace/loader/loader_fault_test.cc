#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "headrace/loader/loader.h"
#include "headrace/loader/test_world.h"

namespace headrace::loader {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

LoaderOptions small_options() {
  LoaderOptions options;
  options.global_batch = 32;
  options.order.lanes = 4;
  options.order.chunk = order::Amount::samples(8);
  options.order.window = order::Amount::samples(128);
  options.epoch_end = order::EpochEnd::kPartial;
  options.memory = 8 << 20;
  return options;
}

WorldOptions remote() {
  WorldOptions world;
  world.store.can_peek = false;
  world.store.latency = milliseconds(20);
  return world;
}

TEST(LoaderFaults, AWindowThatDoesNotFitIsRefusedWithTheChoices) {
  WorldOptions options = remote();
  options.samples = 300'000;
  options.shard_bytes = 1 << 20;
  TestWorld world(options);
  LoaderOptions run = small_options();
  run.order.window = order::Amount::bytes(64 << 20);
  run.memory = 4 << 20;
  const auto loader = world.loader(run);
  EXPECT_EQ(loader.status().code(), Code::kExhausted);
  for (const char* part : {"memory=", "window=", "DEFF"}) {
    EXPECT_NE(loader.status().message().find(part), std::string::npos) << loader.status().message();
  }
  // What it proposes is accepted as it stands.
  const std::string& text = loader.status().message();
  const auto number_after = [&](std::string_view mark) {
    return std::stoull(text.substr(text.find(mark) + mark.size()));
  };
  LoaderOptions larger = run;
  larger.memory = number_after("memory=\"") << 20;
  EXPECT_TRUE(world.loader(larger).is_ok());
  LoaderOptions narrower = run;
  narrower.order.window = order::Amount::samples(number_after("window="));
  EXPECT_TRUE(world.loader(narrower).is_ok());
}

TEST(LoaderFaults, BatchesThatTheConsumerHoldsAreNamedWhenMemoryRunsOut) {
  TestWorld world;
  LoaderOptions run = small_options();
  run.memory = 4 << 20;
  run.global_batch = 1000;
  const auto loader = *world.loader(run);
  std::vector<std::shared_ptr<Batch>> held;
  Status status;
  for (int i = 0; i < 200 && status.is_ok(); ++i) {
    auto batch = loader->next();
    status = batch.status();
    if (batch.is_ok()) held.push_back(*batch);
  }
  EXPECT_EQ(status.code(), Code::kExhausted);
  EXPECT_NE(status.message().find("leases hold"), std::string::npos) << status.message();
  held.clear();
  EXPECT_TRUE(loader->next().is_ok());
}

TEST(LoaderFaults, ABatchLargerThanTheMemoryIsRefusedAtOnce) {
  TestWorld world;
  LoaderOptions run = small_options();
  run.memory = 4 << 20;
  run.global_batch = 1'000'000;
  run.epoch_end = order::EpochEnd::kCarry;
  const auto loader = *world.loader(run);
  EXPECT_EQ(loader->next().status().code(), Code::kExhausted);
}

TEST(LoaderFaults, AStoreThatNeverAnswersEndsWithADeadline) {
  WorldOptions options = remote();
  options.store.fault = [](std::string_view key, std::uint64_t nth) {
    store::MemoryFault fault;
    fault.never = key.starts_with("shard.") && nth > 3;
    return fault;
  };
  TestWorld world(options);
  LoaderOptions run = small_options();
  run.read_timeout = seconds(30);
  const auto loader = *world.loader(run);
  const TimePoint start = world.executor().clock().now();
  EXPECT_EQ(read_epoch(*loader).status().code(), Code::kDeadline);
  EXPECT_LE(world.executor().clock().now() - start, seconds(60));
}

TEST(LoaderFaults, AFailureIsFinalUntilSeek) {
  WorldOptions options = remote();
  auto broken = std::make_shared<std::atomic<bool>>(true);
  options.store.fault = [broken](std::string_view key, std::uint64_t) {
    store::MemoryFault fault;
    if (*broken && key.starts_with("shard."))
      fault.status = denied("no access to " + std::string(key));
    return fault;
  };
  TestWorld world(options);
  LoaderOptions run = small_options();
  run.bad_samples = BadSamples::kSkip;  // does not cover faults of the store
  const auto loader = *world.loader(run);
  EXPECT_EQ(loader->next().status().code(), Code::kDenied);
  *broken = false;
  EXPECT_EQ(loader->next().status().code(), Code::kDenied);
  ASSERT_TRUE(loader->seek(0).is_ok());
  EXPECT_TRUE(read_epoch(*loader).is_ok());
}

TEST(LoaderFaults, AMissingAndATruncatedShardAreNamed) {
  for (const bool can_peek : {true, false}) {
    WorldOptions options = remote();
    options.store.can_peek = can_peek;
    TestWorld missing(options);
    const std::string name = missing.dataset()->reader().shards()[2].name;
    ASSERT_TRUE(store::remove(missing.store(), {missing.executor()}, name).is_ok());
    const auto gone = *missing.loader(small_options());
    const Status status = read_epoch(*gone).status();
    EXPECT_EQ(status.code(), Code::kNotFound) << status.to_string();
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();

    TestWorld cut(options);
    cut.store().set(name, "short");
    const auto loader = *cut.loader(small_options());
    const Status truncated = read_epoch(*loader).status();
    EXPECT_EQ(truncated.code(), Code::kCorrupt) << truncated.to_string();
    EXPECT_NE(truncated.message().find(name), std::string::npos) << truncated.message();
  }
}

// Breaks the length of the text of one sample, which its own shard then contradicts.
class BadSample : public testing::TestWithParam<bool> {
 protected:
  static std::unique_ptr<TestWorld> world() {
    WorldOptions options = remote();
    options.store.can_peek = GetParam();
    auto out = std::make_unique<TestWorld>(options);
    const auto& shard = out->dataset()->reader().shards()[0];
    const std::string whole =
        store::read_whole(out->store(), {out->executor()}, shard.name, 1 << 20)->bytes;
    std::string broken = whole;
    const auto at = load_le<std::uint32_t>(as_bytes(whole).data() + 4 + 4 * 7);
    broken[at + 1] = '\x7f';
    out->store().set(shard.name, broken);
    return out;
  }
};

TEST_P(BadSample, RaiseNamesItsPlace) {
  const auto w = world();
  const auto loader = *w->loader(small_options());
  const Status status = read_epoch(*loader).status();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("sample 7 (number 7 of the data set)"), std::string::npos)
      << status.message();
}

TEST_P(BadSample, SkipLeavesItOutAndCounts) {
  const auto w = world();
  LoaderOptions run = small_options();
  run.bad_samples = BadSamples::kSkip;
  const auto loader = *w->loader(run);
  std::set<std::uint64_t> seen;
  for (const auto& batch : *read_epoch(*loader)) seen.insert(batch.begin(), batch.end());
  EXPECT_EQ(seen.size(), 999U);
  EXPECT_FALSE(seen.contains(7));
  EXPECT_EQ(w->metrics().counters().at("headrace_loader_bad_samples_total"), 1U);
}

TEST_P(BadSample, SubstituteKeepsTheShapeOfBatches) {
  const auto w = world();
  LoaderOptions run = small_options();
  run.bad_samples = BadSamples::kSubstitute;
  const auto loader = *w->loader(run);
  std::multiset<std::uint64_t> seen;
  for (const auto& batch : *read_epoch(*loader)) seen.insert(batch.begin(), batch.end());
  EXPECT_EQ(seen.size(), 1000U);
  EXPECT_EQ(std::set<std::uint64_t>(seen.begin(), seen.end()).size(), 999U);
}

INSTANTIATE_TEST_SUITE_P(LocalAndRemote, BadSample, testing::Bool());

TEST(LoaderFaults, UnknownColumnsAndDecodingTextAreRefusedByName) {
  TestWorld world;
  LoaderOptions run = small_options();
  run.columns = {"image"};
  EXPECT_NE(world.loader(run).status().message().find("no field \"image\""), std::string::npos);
  run.columns = {};
  run.decode["text"] = {};
  EXPECT_NE(world.loader(run).status().message().find("not a picture"), std::string::npos);
}

TEST(LoaderFaults, CloseEndsARunWithReadsUnderWay) {
  WorldOptions options = remote();
  options.is_virtual = false;
  options.store.fault = [](std::string_view key, std::uint64_t) {
    store::MemoryFault fault;
    fault.never = key.starts_with("shard.");
    return fault;
  };
  TestWorld world(options);
  const auto loader = *world.loader(small_options());
  const auto none = loader->next(world.executor().clock().now() + milliseconds(20));
  ASSERT_TRUE(none.is_ok());
  EXPECT_EQ(*none, nullptr);
  std::thread closer([&] { loader->close(); });
  EXPECT_EQ(loader->next().status().code(), Code::kCancelled);
  closer.join();
  loader->close();
}

TEST(LoaderFaults, BatchesOutliveTheLoaderAndTheWorld) {
  std::shared_ptr<Batch> kept;
  {
    WorldOptions options;
    options.is_virtual = false;
    TestWorld world(options);
    const auto loader = *world.loader(small_options());
    kept = *loader->next();
  }
  EXPECT_EQ(rows_of(*kept).size(), 32U);
}

TEST(LoaderFaults, DroppingALoaderWithWorkUnderWayIsClean) {
  WorldOptions options;
  options.is_virtual = false;
  TestWorld world(options);
  for (int i = 0; i < 50; ++i) {
    const auto loader = *world.loader(small_options());
    if (i % 2 == 0) (void)*loader->next();
    if (i % 3 != 0) continue;
    EXPECT_TRUE(loader->seek(64).is_ok());
  }
}

}  // namespace
}  // namespace headrace::loader
