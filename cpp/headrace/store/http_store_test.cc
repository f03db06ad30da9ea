#include "headrace/store/http_store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "headrace/store/store_test_util.h"
#include "headrace/testing/fault_server.h"
#include "headrace/testing/store_conformance.h"

namespace headrace::store {
namespace {

using headrace::testing::Fault;
using headrace::testing::FaultServer;
using headrace::testing::FaultServerOptions;
using headrace::testing::StoreCase;
using headrace::testing::StoreConformance;
using headrace::testing::StoreFixture;
using std::chrono::milliseconds;
using std::chrono::seconds;

class HttpFixture final : public StoreFixture {
 public:
  explicit HttpFixture(FaultServerOptions options) : server_(std::move(options)) {
    bench_.open(server_.url() + "/data/v1/");
  }
  ObjectStore& store() override { return *bench_.store; }
  exec::Executor& executor() override { return *bench_.executor; }
  void place(const std::string& key, const std::string& bytes) override {
    server_.set("data/v1/" + key, bytes);
  }
  bool can_write() const override { return false; }
  bool can_peek() const override { return false; }

 private:
  FaultServer server_;
  Bench bench_;
};

const StoreCase kCases[] = {
    {"Http", [] { return std::make_unique<HttpFixture>(FaultServerOptions{}); }},
    {"HttpWithWeakEtags",
     [] { return std::make_unique<HttpFixture>(FaultServerOptions{.etags = "weak"}); }},
    {"HttpThatForbidsHead",
     [] { return std::make_unique<HttpFixture>(FaultServerOptions{.has_head = false}); }},
    {"HttpThatHidesSizesIn416",
     [] { return std::make_unique<HttpFixture>(FaultServerOptions{.tells_size = false}); }},
};
INSTANTIATE_TEST_SUITE_P(Http, StoreConformance, ::testing::ValuesIn(kCases),
                         [](const auto& param) { return param.param.name; });

// Long patience by default, so that a slow machine causes no retry that a test would count.
StoreOptions quick(Duration stall = seconds(20)) {
  StoreOptions options;
  options.attempts = 4;
  options.stall_timeout = stall;
  return options;
}

// A server with one object of 300,000 bytes, and a store on it that gives up quickly.
struct Faulty {
  explicit Faulty(FaultServerOptions server_options = {}, StoreOptions options = quick())
      : server(std::move(server_options)) {
    server.set("a", bytes);
    bench.open(server.url(), options);
  }
  Result<std::string> read(ByteRange range = {1000, 200'000}) { return bench.read("a", range); }
  void expect_good() {
    const auto got = read();
    ASSERT_TRUE(got.is_ok()) << got.status().to_string();
    EXPECT_TRUE(*got == bytes.substr(1000, 200'000));
  }

  const std::string bytes = pattern(300'000);
  FaultServer server;
  Bench bench;
};

TEST(HttpStore, HealsEveryFaultThatPasses) {
  const Fault faults[] = {
      {.status = 500},
      {.status = 502},
      {.status = 408},
      {.never = true},
      {.cut_at = 0},
      {.cut_at = 77'777},
      {.cut_at = 10, .reset = true},
      {.cut_at = 100'000, .stall = true},
      {.headers = {{"content-range", "bytes 0-199999/300000"}}},
      {.headers = {{"content-range", "bytes garbage"}}},
      {.shorten_to = 5000},
      {.raw = ""},
      {.raw = "HTTP/1.1 206 Partial"},
      {.raw = "not http at all\r\n\r\n"},
  };
  int number = 0;
  for (const Fault& fault : faults) {
    SCOPED_TRACE(number++);
    const bool stalls = fault.never || fault.stall;
    Faulty faulty({}, quick(stalls ? milliseconds(300) : seconds(20)));
    faulty.server.add(fault);
    faulty.expect_good();
    if (!stalls) {
      EXPECT_EQ(faulty.server.seen().size(), 2U);
    }
  }
}

TEST(HttpStore, ContinuesATruncatedBodyFromTheNextByteOfTheSameVersion) {
  Faulty faulty;
  faulty.server.add({.cut_at = 50'000});
  faulty.server.add({.cut_at = 60'000});
  faulty.expect_good();
  const auto seen = faulty.server.seen();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[1].headers.find("range")->second, "bytes=51000-200999");
  EXPECT_EQ(seen[2].headers.find("range")->second, "bytes=111000-200999");
  EXPECT_EQ(seen[0].headers.count("if-match"), 0U);
  EXPECT_EQ(seen[1].headers.count("if-match"), 1U);
}

TEST(HttpStore, NeverMixesTwoVersionsOfAnObject) {
  for (const char* etags : {"strong", "weak"}) {
    Faulty faulty({.etags = etags});
    faulty.server.add({.cut_at = 50'000, .replace_by = pattern(300'000, 9)});
    expect_error(faulty.read().status(), Code::kCorrupt, {"changed", "/a", "open the data set"});
  }
  // Several ranges of an object that nobody pinned are of one version as well.
  Faulty faulty;
  faulty.server.add({.replace_by = pattern(300'000, 9)});
  ReadRequest request;
  request.object.key = "a";
  request.ranges = {{0, 10}, {100, 10}};
  request.destination = heap_lease(20);
  Mutex mutex;
  CondVar arrived;
  std::optional<Status> status;
  request.done = [&](const Result<ReadReply>& reply) {
    MutexLock lock(mutex);
    status = reply.status();
    arrived.notify_all();
  };
  faulty.bench.store->submit(std::move(request));
  MutexLock lock(mutex);
  while (!status) arrived.wait(mutex);
  EXPECT_EQ(status->code(), Code::kCorrupt) << status->to_string();
}

TEST(HttpStore, TakesAWholeObjectForARangeOnlyFromItsStart) {
  Faulty faulty({.has_ranges = false});
  EXPECT_EQ(*faulty.read({0, 1234}), faulty.bytes.substr(0, 1234));
  EXPECT_TRUE(*faulty.read({0, 300'000}) == faulty.bytes);
  expect_error(faulty.read({5, 10}).status(), Code::kUnimplemented, {"ignores ranges", "5-14"});
  // A body that broke off starts again at its first byte.
  faulty.server.add({.cut_at = 50'000});
  EXPECT_TRUE(*faulty.read({0, 300'000}) == faulty.bytes);
}

TEST(HttpStore, ReportsWhatDoesNotPass) {
  Faulty faulty;
  faulty.server.add({.times = -1, .status = 500});
  expect_error(faulty.read().status(), Code::kUnavailable,
               {"500", "bytes 1000-200999", "/a", "attempt 4", "all attempts used up"});
  EXPECT_EQ(faulty.server.seen().size(), 4U);
}

TEST(HttpStore, ReportsAWrongRangeAfterOneMoreTry) {
  Faulty faulty;
  faulty.server.add({.times = -1, .headers = {{"content-range", "bytes 0-199999/300000"}}});
  expect_error(faulty.read().status(), Code::kCorrupt, {"bytes 0-199999/300000"});
  EXPECT_EQ(faulty.server.seen().size(), 2U);
}

TEST(HttpStore, GivesUpAtTheDeadline) {
  Faulty faulty({}, StoreOptions{});
  faulty.server.add({.times = -1, .never = true});
  const TimePoint before = faulty.bench.executor->clock().now();
  const auto got = faulty.bench.read("a", {0, 10}, milliseconds(400));
  expect_error(got.status(), Code::kDeadline, {"deadline", "/a"});
  EXPECT_LT(faulty.bench.executor->clock().now() - before, seconds(5));
}

TEST(HttpStore, AStallIsNoticedThoughTheDeadlineIsFar) {
  Faulty faulty({}, quick(milliseconds(300)));
  // More stalls than there are attempts; those are counted anew whenever bytes have arrived.
  faulty.server.add({.times = -1, .cut_at = 20'000, .stall = true});
  const auto got = faulty.read({0, 110'000});
  ASSERT_TRUE(got.is_ok()) << got.status().to_string();
  EXPECT_TRUE(*got == faulty.bytes.substr(0, 110'000));
  EXPECT_GE(faulty.server.seen().size(), 6U);
}

TEST(HttpStore, ASlowBodyIsNotAStall) {
  Faulty faulty;
  faulty.server.add({.drip_bytes = 2000});
  faulty.expect_good();
  EXPECT_EQ(faulty.bench.retries(), 0U);
}

TEST(HttpStore, WaitsAsLongAsTheServerAsks) {
  Faulty faulty;
  faulty.server.add({.status = 429, .headers = {{"retry-after", "1"}}});
  const TimePoint before = faulty.bench.executor->clock().now();
  faulty.expect_good();
  EXPECT_GE(faulty.bench.executor->clock().now() - before, seconds(1));
  faulty.server.add({.times = -1, .status = 503, .headers = {{"retry-after", "600"}}});
  expect_error(faulty.bench.read("a", {0, 5}, seconds(3)).status(), Code::kThrottled,
               {"503", "fewer", "deadline"});
}

TEST(HttpStore, FollowsRedirectsOnTheSameHostOnly) {
  Faulty faulty;
  faulty.server.set("b", faulty.bytes);
  faulty.server.add({.status = 302, .headers = {{"location", "/b"}}});
  faulty.expect_good();
  faulty.server.add({.status = 307, .headers = {{"location", "http://example.invalid/b?sig=xyz"}}});
  const Status away = faulty.read().status();
  expect_error(away, Code::kDenied, {"example.invalid", "another host"});
  EXPECT_EQ(away.message().find("xyz"), std::string::npos);
  faulty.server.add({.times = -1, .status = 301, .headers = {{"location", "/a"}}});
  expect_error(faulty.read().status(), Code::kCorrupt, {"redirects more than"});
}

TEST(HttpStore, TheQueryOfASignedUrlIsSentAndNeverShown) {
  FaultServer server;
  server.set("a", "abc");
  Bench bench;
  bench.open(server.url() + "?token=s3cr3t");
  EXPECT_EQ(*bench.read("a", {0, 3}), "abc");
  EXPECT_EQ(server.seen().front().target, "/a?token=s3cr3t");
  const Status missing = bench.read("b", {0, 3}).status();
  expect_error(missing, Code::kNotFound, {"/b"});
  EXPECT_EQ(missing.message().find("s3cr3t"), std::string::npos);
  EXPECT_EQ(bench.store->describe("b").find("s3cr3t"), std::string::npos);
}

TEST(HttpStore, UnreachableHostsAreNamed) {
  int closed_port = 0;
  {
    FaultServer gone;
    closed_port = gone.port();
  }
  Bench bench;
  StoreOptions options;
  options.attempts = 2;
  bench.open("http://127.0.0.1:" + std::to_string(closed_port), options);
  expect_error(bench.read("a", {0, 1}).status(), Code::kUnavailable,
               {"127.0.0.1:" + std::to_string(closed_port), "cannot connect", "attempt 2"});
}

TEST(HttpStore, NamesThatCannotBeResolvedAreNamed) {
  Bench bench;
  StoreOptions options;
  options.attempts = 3;
  bench.open("http://no-such-host.invalid/x", options);
  expect_error(bench.read("a", {0, 1}).status(), Code::kUnavailable,
               {"no-such-host.invalid", "cannot be resolved", "attempt 3"});
}

TEST(HttpStore, NeverSendsMoreAtOnceThanAllowed) {
  StoreOptions options;
  options.connections = 3;
  Faulty faulty({}, options);
  std::vector<std::string> keys(30, "a");
  faulty.server.add({.times = -1, .delay = milliseconds(5)});
  const auto all = read_whole_many(*faulty.bench.store, faulty.bench.how(), keys, 1 << 20);
  for (const auto& whole : all) {
    ASSERT_TRUE(whole.is_ok()) << whole.status().to_string();
  }
  EXPECT_LE(faulty.server.requests_at_once_max(), 3);
  EXPECT_LE(faulty.server.connections(), 3U);
}

TEST(HttpStore, CloseEndsAReadThatHangs) {
  Faulty faulty({}, StoreOptions{});
  faulty.server.add({.times = -1, .never = true});
  std::atomic<int> done = 0;
  ReadRequest request;
  request.object.key = "a";
  request.ranges = {{0, 10}};
  request.destination = heap_lease(10);
  request.done = [&](const Result<ReadReply>& reply) {
    EXPECT_EQ(reply.status().code(), Code::kCancelled);
    ++done;
  };
  faulty.bench.store->submit(std::move(request));
  faulty.bench.store->close();
  EXPECT_EQ(done, 1);
}

TEST(HttpStore, AStopEndsAReadThatHangsOrWaitsForItsNextAttempt) {
  const Fault faults[] = {{.times = -1, .never = true},
                          {.times = -1, .status = 503, .headers = {{"retry-after", "50"}}}};
  for (const Fault& fault : faults) {
    Faulty faulty({}, StoreOptions{});
    faulty.server.add(fault);
    std::stop_source source;
    Mutex mutex;
    CondVar arrived;
    std::optional<Status> status;
    ReadRequest request;
    request.object.key = "a";
    request.ranges = {{0, 10}};
    request.destination = heap_lease(10);
    request.stop = source.get_token();
    request.done = [&](const Result<ReadReply>& reply) {
      MutexLock lock(mutex);
      status = reply.status();
      arrived.notify_all();
    };
    faulty.bench.store->submit(std::move(request));
    while (faulty.server.seen().empty()) std::this_thread::yield();
    source.request_stop();
    MutexLock lock(mutex);
    while (!status) arrived.wait(mutex);
    EXPECT_EQ(status->code(), Code::kCancelled) << status->to_string();
  }
}

TEST(HttpStore, AForkedChildGetsAnErrorAtOnce) {
  Faulty faulty;
  faulty.expect_good();
  const pid_t child = fork();
  if (child == 0) {
    const Status status = head(*faulty.bench.store, faulty.bench.how(), "a").status();
    const bool clear = status.code() == Code::kInvalidArgument &&
                       status.message().find("forked child") != std::string::npos;
    faulty.bench.store.reset();
    _exit(clear ? 0 : 1);
  }
  int result = -1;
  ASSERT_EQ(waitpid(child, &result, 0), child);
  EXPECT_TRUE(WIFEXITED(result) && WEXITSTATUS(result) == 0) << result;
  faulty.expect_good();
}

TEST(OpenStore, RefusesWhatItCannotMean) {
  Bench bench;
  const struct {
    const char* url;
    Code code;
  } kTable[] = {
      {"", Code::kInvalidArgument},
      {"ftp://host/x", Code::kUnimplemented},
      {"gs://bucket/x", Code::kUnimplemented},
      {"http://", Code::kInvalidArgument},
      {"http://user:secret@host/x", Code::kInvalidArgument},
      {"http://host:99999/x", Code::kInvalidArgument},
      {"http://ho st/x", Code::kInvalidArgument},
      {"http://host/x#y", Code::kInvalidArgument},
      {"file://host/x", Code::kInvalidArgument},
      {"s3://", Code::kInvalidArgument},
      {"s3:///key", Code::kInvalidArgument},
      {"s3://arn:aws:s3:x/y", Code::kUnimplemented},
      {"s3://b--x-s3/y", Code::kUnimplemented},
      {"s3://bucket/a/../b", Code::kInvalidArgument},
  };
  for (const auto& row : kTable) {
    StoreOptions options;
    options.anonymous = true;
    const auto opened = open_store(row.url, options, bench.deps());
    EXPECT_EQ(opened.status().code(), row.code) << row.url << ": " << opened.status().to_string();
    EXPECT_EQ(opened.status().message().find("secret"), std::string::npos);
  }
  StoreOptions options;
  options.connections = 0;
  EXPECT_EQ(open_store("x", options, bench.deps()).status().code(), Code::kInvalidArgument);
}

TEST(OpenStore, SplitsTheNameOfAnObjectFromItsStore) {
  const struct {
    const char* url;
    const char* root;
    const char* key;
  } kTable[] = {
      {"s3://b/a/c.bin", "s3://b/a", "c.bin"},
      {"s3://b/c%20d", "s3://b", "c%20d"},
      {"http://h/x/a%20b", "http://h/x", "a b"},
      {"/data/c.bin", "/data", "c.bin"},
      {"c.bin", ".", "c.bin"},
      {"/c.bin", "/", "c.bin"},
      {"file:///d/c%23", "file:///d", "c#"},
  };
  for (const auto& row : kTable) {
    const auto split = split_object_url(row.url);
    ASSERT_TRUE(split.is_ok()) << row.url << ": " << split.status().to_string();
    EXPECT_EQ(split->root, row.root);
    EXPECT_EQ(split->key, row.key);
  }
  for (const char* url : {"", "s3://bucket", "dir/", "http://h/a%2", "http://h/a?b"}) {
    EXPECT_FALSE(split_object_url(url).is_ok()) << url;
  }
}

}  // namespace
}  // namespace headrace::store
