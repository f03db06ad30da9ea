#include "headrace/testing/store_conformance.h"

#include <atomic>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/base/rng.h"
#include "headrace/store/blocking.h"

namespace headrace::testing {
namespace {

using std::chrono::seconds;
using store::Blocking;

std::string pattern(std::size_t size, std::uint64_t seed = 1) {
  Rng rng(seed);
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(rng.next());
  return out;
}

std::string text_of(const store::ReadReply& reply) {
  return std::string(as_text(reply.memory.bytes().first(reply.length)));
}

}  // namespace

store::ReadRequest StoreConformance::request(const std::string& key,
                                             std::vector<ByteRange> ranges) {
  store::ReadRequest out;
  out.object.key = key;
  std::uint64_t total = 0;
  for (const ByteRange& range : ranges) total += range.length;
  out.destination = heap_lease(total);
  out.ranges = std::move(ranges);
  out.deadline = executor().clock().now() + seconds(20);
  return out;
}

Result<store::ReadReply> StoreConformance::read(store::ReadRequest request) {
  struct Waiting {
    Mutex mutex;
    CondVar arrived;
    std::optional<Result<store::ReadReply>> reply;
  };
  auto waiting = std::make_shared<Waiting>();
  request.done = [waiting](Result<store::ReadReply> reply) {
    MutexLock lock(waiting->mutex);
    EXPECT_FALSE(waiting->reply.has_value()) << "completed twice";
    waiting->reply.emplace(std::move(reply));
    waiting->arrived.notify_all();
  };
  store().submit(std::move(request));
  const TimePoint until = executor().clock().now() + seconds(60);
  MutexLock lock(waiting->mutex);
  while (!waiting->reply) {
    if (executor().clock().now() >= until ||
        !executor().wait(waiting->mutex, waiting->arrived, until)) {
      ADD_FAILURE() << "the request was never completed";
      return internal_error("never completed");
    }
  }
  return std::move(*waiting->reply);
}

TEST_P(StoreConformance, DeliversRangesBackToBack) {
  const std::string bytes = pattern(100'000);
  fixture_->place("dir/a.bin", bytes);
  auto reply = read(request("dir/a.bin", {{0, 10}, {10, 20}, {5000, 3}, {99'990, 10}}));
  ASSERT_TRUE(reply.is_ok()) << reply.status().to_string();
  EXPECT_EQ(text_of(*reply),
            bytes.substr(0, 30) + bytes.substr(5000, 3) + bytes.substr(99'990, 10));
  EXPECT_EQ(reply->info.size, bytes.size());
  EXPECT_FALSE(reply->info.pin.empty());
}

TEST_P(StoreConformance, DeliversOverlappingAndUnorderedRanges) {
  const std::string bytes = pattern(4096);
  fixture_->place("a", bytes);
  auto reply = read(request("a", {{100, 50}, {0, 120}, {0, 0}, {110, 5}}));
  ASSERT_TRUE(reply.is_ok()) << reply.status().to_string();
  EXPECT_EQ(text_of(*reply), bytes.substr(100, 50) + bytes.substr(0, 120) + bytes.substr(110, 5));
}

TEST_P(StoreConformance, CutsTheLastRangeOnlyWhenAskedTo) {
  const std::string bytes = pattern(1000);
  fixture_->place("a", bytes);
  auto short_read = request("a", {{0, 10}, {990, 100}});
  short_read.may_be_short = true;
  auto reply = read(std::move(short_read));
  ASSERT_TRUE(reply.is_ok()) << reply.status().to_string();
  EXPECT_EQ(reply->length, 20U);
  EXPECT_EQ(text_of(*reply), bytes.substr(0, 10) + bytes.substr(990));

  auto strict = read(request("a", {{990, 100}}));
  EXPECT_EQ(strict.status().code(), Code::kCorrupt) << strict.status().to_string();
  auto beyond = request("a", {{5000, 100}});
  beyond.may_be_short = true;
  auto nothing = read(std::move(beyond));
  ASSERT_TRUE(nothing.is_ok()) << nothing.status().to_string();
  EXPECT_EQ(nothing->length, 0U);
  EXPECT_EQ(nothing->info.size, 1000U);
}

TEST_P(StoreConformance, ReadsEmptyObjectsAndEmptyRequests) {
  fixture_->place("empty", "");
  fixture_->place("full", "abc");
  auto short_read = request("empty", {{0, 100}});
  short_read.may_be_short = true;
  auto reply = read(std::move(short_read));
  ASSERT_TRUE(reply.is_ok()) << reply.status().to_string();
  EXPECT_EQ(reply->length, 0U);
  EXPECT_EQ(reply->info.size, 0U);
  EXPECT_EQ(read(request("empty", {{0, 1}})).status().code(), Code::kCorrupt);
  auto none = read(request("full", {}));
  ASSERT_TRUE(none.is_ok()) << none.status().to_string();
  EXPECT_EQ(none->length, 0U);
  EXPECT_EQ(none->info.size, 3U);
}

TEST_P(StoreConformance, ReadsLargeObjectsWhole) {
  const std::string bytes = pattern(5'000'011);
  fixture_->place("large", bytes);
  auto whole = store::read_whole(store(), {.executor = executor()}, "large", 1 << 24);
  ASSERT_TRUE(whole.is_ok()) << whole.status().to_string();
  EXPECT_TRUE(whole->bytes == bytes);
  EXPECT_EQ(whole->info.size, bytes.size());
  auto refused = store::read_whole(store(), {.executor = executor()}, "large", 5'000'010);
  EXPECT_EQ(refused.status().code(), Code::kExhausted);
}

TEST_P(StoreConformance, ManyReadsAtOnceEachGetTheirOwnAnswer) {
  const std::string bytes = pattern(300'000);
  fixture_->place("a", bytes);
  std::vector<std::string> keys;
  for (int i = 0; i < 60; ++i) keys.push_back(i % 3 == 2 ? "missing-" + std::to_string(i) : "a");
  const auto all = store::read_whole_many(store(), {.executor = executor()}, keys, 1 << 20);
  ASSERT_EQ(all.size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i % 3 == 2) {
      EXPECT_EQ(all[i].status().code(), Code::kNotFound) << all[i].status().to_string();
    } else {
      ASSERT_TRUE(all[i].is_ok()) << all[i].status().to_string();
      EXPECT_TRUE(all[i]->bytes == bytes);
    }
  }
}

TEST_P(StoreConformance, NamesWithOddBytesAreReadAsGiven) {
  for (const char* key : {"with space", "p%25cent", "plus+and&=", "\xc3\xa4\xe2\x82\xac", "a~b(c)'",
                          "q?x=1", "h#x", "semi;colon:at@"}) {
    fixture_->place(key, std::string("body of ") + key);
    auto whole = store::read_whole(store(), {.executor = executor()}, key, 1000);
    ASSERT_TRUE(whole.is_ok()) << whole.status().to_string();
    EXPECT_EQ(whole->bytes, std::string("body of ") + key);
  }
}

TEST_P(StoreConformance, MissingObjectsAreNotFoundByName) {
  auto reply = read(request("no/such.bin", {{0, 10}}));
  EXPECT_EQ(reply.status().code(), Code::kNotFound) << reply.status().to_string();
  EXPECT_NE(reply.status().message().find("no/such.bin"), std::string::npos);
  const auto head = store::head(store(), {.executor = executor()}, "no/such.bin");
  EXPECT_EQ(head.status().code(), Code::kNotFound) << head.status().to_string();
}

TEST_P(StoreConformance, NamesThatLeaveTheRootAreRefused) {
  for (const char* key : {"", "/etc/passwd", "../up", "a/../../b", "a//b", "./a", "a/", "a\\b"}) {
    EXPECT_EQ(read(request(key, {{0, 1}})).status().code(), Code::kInvalidArgument) << key;
    EXPECT_EQ(store().peek({.key = key}).status().code(), Code::kInvalidArgument);
    EXPECT_EQ(store::head(store(), {.executor = executor()}, key).status().code(),
              Code::kInvalidArgument);
  }
  EXPECT_EQ(read(request(std::string("a\0b", 3), {{0, 1}})).status().code(),
            Code::kInvalidArgument);
}

TEST_P(StoreConformance, RangesThatOverflowOrOutgrowTheirMemoryAreRefused) {
  fixture_->place("a", "abc");
  auto overflow = request("a", {{0, 1}});
  overflow.ranges = {{~0ULL - 1, 5}};
  EXPECT_EQ(read(std::move(overflow)).status().code(), Code::kInvalidArgument);
  auto narrow = request("a", {{0, 1}});
  narrow.ranges = {{0, 2}};
  EXPECT_EQ(read(std::move(narrow)).status().code(), Code::kInvalidArgument);
}

TEST_P(StoreConformance, PinnedReadsRefuseAnotherVersion) {
  fixture_->place("a", pattern(5000, 1));
  const auto info = store::head(store(), {.executor = executor()}, "a");
  ASSERT_TRUE(info.is_ok()) << info.status().to_string();
  auto same = request("a", {{10, 10}});
  same.object.pin = info->pin;
  auto reply = read(std::move(same));
  ASSERT_TRUE(reply.is_ok()) << reply.status().to_string();
  EXPECT_EQ(reply->info.pin, info->pin);

  fixture_->place("a", pattern(5001, 2));
  auto stale = request("a", {{10, 10}});
  stale.object.pin = info->pin;
  const Status status = read(std::move(stale)).status();
  EXPECT_EQ(status.code(), Code::kCorrupt) << status.to_string();
  EXPECT_NE(status.message().find("changed"), std::string::npos) << status.to_string();
}

TEST_P(StoreConformance, PeekAddressesTheWholeObjectOrSaysThatItCannot) {
  const std::string bytes = pattern(70'000);
  fixture_->place("a", bytes);
  auto peeked = store().peek({.key = "a"});
  ASSERT_TRUE(peeked.is_ok()) << peeked.status().to_string();
  ASSERT_EQ(peeked->has_value(), fixture_->can_peek());
  if (!fixture_->can_peek()) return;
  EXPECT_TRUE(as_text((*peeked)->bytes) == bytes);
  EXPECT_EQ(store().peek({.key = "b"}).status().code(), Code::kNotFound);
  EXPECT_EQ(store().peek({.key = "a", .pin = "other", .size = {}}).status().code(), Code::kCorrupt);
  // Bytes that were handed out stay what they were when the object is replaced.
  fixture_->place("a", "new");
  EXPECT_TRUE(as_text((*peeked)->bytes) == bytes);
  auto again = store().peek({.key = "a"});
  ASSERT_TRUE(again.is_ok());
  EXPECT_EQ(as_text((*again)->bytes), "new");
}

TEST_P(StoreConformance, StoppedAndLateRequestsFailAndReturnTheirMemory) {
  fixture_->place("a", "abc");
  static std::atomic<int> returned;
  returned = 0;
  const auto counted = [] {
    static std::byte memory[8];
    return Lease({memory, 8}, [](void*, MutableBytes) { ++returned; }, nullptr);
  };
  std::stop_source source;
  source.request_stop();
  auto stopped = request("a", {{0, 3}});
  stopped.destination = counted();
  stopped.stop = source.get_token();
  EXPECT_EQ(read(std::move(stopped)).status().code(), Code::kCancelled);
  EXPECT_EQ(returned, 1);
  auto late = request("a", {{0, 3}});
  late.destination = counted();
  late.deadline = executor().clock().now() - seconds(1);
  EXPECT_EQ(read(std::move(late)).status().code(), Code::kDeadline);
  EXPECT_EQ(returned, 2);
}

TEST_P(StoreConformance, AfterCloseEverythingIsCancelled) {
  fixture_->place("a", "abc");
  store().close();
  store().close();
  EXPECT_EQ(read(request("a", {{0, 3}})).status().code(), Code::kCancelled);
  EXPECT_EQ(store::head(store(), {.executor = executor()}, "a").status().code(), Code::kCancelled);
}

TEST_P(StoreConformance, CloseWaitsForWhatIsUnderWay) {
  fixture_->place("a", pattern(2'000'000));
  auto done = std::make_shared<std::atomic<int>>(0);
  for (int i = 0; i < 40; ++i) {
    auto each = request("a", {{0, 2'000'000}});
    each.done = [done](const Result<store::ReadReply>&) { ++*done; };
    store().submit(std::move(each));
  }
  store().close();
  EXPECT_EQ(done->load(), 40);
}

TEST_P(StoreConformance, PutsReplaceWholeObjectsAndRemoveForgetsThem) {
  const Blocking how{.executor = executor()};
  if (!fixture_->can_write()) {
    EXPECT_EQ(store::put(store(), how, "w", "x").status().code(), Code::kUnimplemented);
    return;
  }
  const std::string first = pattern(200'000, 3);
  auto put = store::put(store(), how, "deep/er/w", first);
  ASSERT_TRUE(put.is_ok()) << put.status().to_string();
  EXPECT_EQ(put->size, first.size());
  EXPECT_TRUE(store::read_whole(store(), how, "deep/er/w", 1 << 20)->bytes == first);
  EXPECT_EQ(store::head(store(), how, "deep/er/w")->pin, put->pin);
  ASSERT_TRUE(store::put(store(), how, "deep/er/w", "").is_ok());
  EXPECT_EQ(store::read_whole(store(), how, "deep/er/w", 1 << 20)->bytes, "");
  EXPECT_EQ(store::put(store(), how, "../w", "x").status().code(), Code::kInvalidArgument);

  EXPECT_TRUE(store::remove(store(), how, "deep/er/w").is_ok());
  EXPECT_TRUE(store::remove(store(), how, "deep/er/w").is_ok());
  EXPECT_EQ(store::head(store(), how, "deep/er/w").status().code(), Code::kNotFound);
}

TEST_P(StoreConformance, ConditionalPutsCreateOnce) {
  if (!fixture_->can_write()) return;
  const Blocking how{.executor = executor()};
  ASSERT_TRUE(store::put(store(), how, "once", "first", true).is_ok());
  const auto second = store::put(store(), how, "once", "second", true);
  EXPECT_EQ(second.status().code(), Code::kInvalidArgument) << second.status().to_string();
  EXPECT_EQ(store::read_whole(store(), how, "once", 100)->bytes, "first");
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreConformance);

}  // namespace headrace::testing
