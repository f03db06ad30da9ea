#include "headrace/store/memory_store.h"

#include <gtest/gtest.h>

#include <string>

#include "headrace/store/blocking.h"
#include "headrace/testing/store_conformance.h"

namespace headrace::store {
namespace {

using headrace::testing::StoreCase;
using headrace::testing::StoreConformance;
using headrace::testing::StoreFixture;
using std::chrono::milliseconds;
using std::chrono::seconds;

class MemoryFixture final : public StoreFixture {
 public:
  MemoryFixture(std::unique_ptr<exec::Executor> executor, MemoryOptions options)
      : executor_(std::move(executor)),
        can_peek_(options.can_peek),
        store_({*executor_, metrics_, {}, {}, 0}, std::move(options)) {}
  ObjectStore& store() override { return store_; }
  exec::Executor& executor() override { return *executor_; }
  void place(const std::string& key, const std::string& bytes) override { store_.set(key, bytes); }
  bool can_peek() const override { return can_peek_; }

 private:
  std::unique_ptr<exec::Executor> executor_;
  obs::Metrics metrics_;
  bool can_peek_;
  MemoryStore store_;
};

const StoreCase kCases[] = {
    {"Memory",
     [] {
       return std::make_unique<MemoryFixture>(exec::make_thread_executor(2), MemoryOptions{});
     }},
    {"MemoryThatLooksRemoteInVirtualTime",
     [] {
       return std::make_unique<MemoryFixture>(
           std::make_unique<exec::VirtualExecutor>(),
           MemoryOptions{.latency = milliseconds(30), .bytes_per_second = 50e6, .can_peek = false});
     }},
};
INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance, ::testing::ValuesIn(kCases),
                         [](const auto& param) { return param.param.name; });

struct Simulated {
  explicit Simulated(MemoryOptions options)
      : store({executor, metrics, {}, {}, 0}, std::move(options)) {
    store.set("a", std::string(1'000'000, 'x'));
  }
  void submit(Duration timeout, std::function<void(Result<ReadReply>)> done) {
    ReadRequest request;
    request.object.key = "a";
    request.ranges = {{0, 1'000'000}};
    request.destination = heap_lease(1'000'000);
    request.deadline = executor.clock().now() + timeout;
    request.done = std::move(done);
    store.submit(std::move(request));
  }
  exec::VirtualExecutor executor;
  obs::Metrics metrics;
  MemoryStore store;
};

TEST(MemoryStore, SharesItsWireBetweenReads) {
  Simulated sim({.latency = milliseconds(10), .bytes_per_second = 10e6, .can_peek = false});
  std::vector<TimePoint> times;
  for (int i = 0; i < 3; ++i) {
    sim.submit(seconds(9), [&](const Result<ReadReply>& reply) {
      EXPECT_TRUE(reply.is_ok());
      times.push_back(sim.executor.clock().now());
    });
  }
  sim.executor.run_until_idle();
  ASSERT_EQ(times.size(), 3U);
  EXPECT_EQ(times[0], TimePoint(milliseconds(110)));
  EXPECT_EQ(times[1], TimePoint(milliseconds(210)));
  EXPECT_EQ(times[2], TimePoint(milliseconds(310)));
  EXPECT_EQ(sim.metrics.counters().at("headrace_store_bytes_total"), 3'000'000U);
}

TEST(MemoryStore, EndsAtTheDeadlineWhenTheWireIsTooSlow) {
  Simulated sim({.latency = milliseconds(10), .bytes_per_second = 1e6});
  Status status;
  sim.submit(milliseconds(500), [&](const Result<ReadReply>& reply) { status = reply.status(); });
  sim.executor.run_until_idle();
  EXPECT_EQ(status.code(), Code::kDeadline);
  EXPECT_EQ(sim.executor.clock().now(), TimePoint(milliseconds(500)));
  EXPECT_EQ(sim.metrics.counters().at("headrace_store_errors_total"), 1U);
}

TEST(MemoryStore, PlaysItsFaultsInOrder) {
  MemoryOptions options;
  options.fault = [](std::string_view key, std::uint64_t nth) -> MemoryFault {
    EXPECT_EQ(key, "a");
    if (nth == 0) return {.status = unavailable("scripted")};
    if (nth == 1) return {.status = {}, .flip_at = 7};
    if (nth == 2) return {.status = {}, .delay = seconds(2)};
    return {.status = {}, .never = true};
  };
  Simulated sim(std::move(options));
  std::vector<std::string> seen;
  const auto note = [&](Result<ReadReply> reply) {
    const std::string what = reply.is_ok()
                                 ? std::string(as_text(reply->memory.bytes().subspan(6, 3)))
                                 : std::string(code_name(reply.status().code()));
    seen.push_back(what + "@" +
                   std::to_string(sim.executor.clock().now().time_since_epoch() / milliseconds(1)));
  };
  for (int i = 0; i < 4; ++i) sim.submit(seconds(5), note);
  sim.executor.run_until_idle();
  EXPECT_EQ(seen,
            (std::vector<std::string>{"unavailable@0", "x\x87x@0", "xxx@2000", "deadline@5000"}));
}

TEST(MemoryStore, CloseEndsReadsThatWouldNeverBeAnswered) {
  MemoryOptions options;
  options.fault = [](std::string_view, std::uint64_t) {
    return MemoryFault{.status = {}, .never = true};
  };
  Simulated sim(std::move(options));
  Status status;
  ReadRequest request;
  request.object.key = "a";
  request.done = [&](const Result<ReadReply>& reply) { status = reply.status(); };
  sim.store.submit(std::move(request));
  sim.store.close();
  EXPECT_EQ(status.code(), Code::kCancelled);
}

}  // namespace
}  // namespace headrace::store
