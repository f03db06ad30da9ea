#include "headrace/store/s3_store.h"

#include <gtest/gtest.h>

#include <string>

#include "headrace/store/s3_upload.h"
#include "headrace/store/store_test_util.h"
#include "headrace/testing/fault_server.h"
#include "headrace/testing/store_conformance.h"

namespace headrace::store {
namespace {

using headrace::testing::Fault;
using headrace::testing::FaultServer;
using headrace::testing::FaultServerOptions;
using headrace::testing::ServerKeys;
using headrace::testing::StoreCase;
using headrace::testing::StoreConformance;
using headrace::testing::StoreFixture;
using std::chrono::milliseconds;
using std::chrono::seconds;

const ServerKeys kKeys{"AKID", "SECRETKEY+/x", "", "us-east-1"};

FaultServerOptions signed_server(ServerKeys keys = kKeys) {
  return {.bucket = "data-bucket", .keys = std::move(keys)};
}

struct S3Bench : Bench {
  explicit S3Bench(FaultServerOptions server_options = signed_server())
      : server(std::move(server_options)) {
    env = {{"AWS_ACCESS_KEY_ID", kKeys.access_key}, {"AWS_SECRET_ACCESS_KEY", kKeys.secret_key}};
    options.endpoint = server.url();
    options.attempts = 3;
  }
  void open_bucket(const std::string& url = "s3://data-bucket/pre") { open(url, options); }

  FaultServer server;
  StoreOptions options;
};

class S3Fixture final : public StoreFixture {
 public:
  explicit S3Fixture(const std::string& addressing, ServerKeys keys) : bench_(signed_server(keys)) {
    bench_.options.addressing = addressing;
    // Names below localhost are loopback without any DNS.
    if (addressing == "virtual") {
      bench_.options.endpoint = "http://localhost:" + std::to_string(bench_.server.port());
    }
    if (!keys.session_token.empty()) bench_.env["AWS_SESSION_TOKEN"] = keys.session_token;
    if (keys.access_key.empty()) {
      bench_.env.clear();
      bench_.options.anonymous = true;
    }
    bench_.open_bucket("s3://data-bucket/data/v1/");
  }
  ObjectStore& store() override { return *bench_.store; }
  exec::Executor& executor() override { return *bench_.executor; }
  void place(const std::string& key, const std::string& bytes) override {
    bench_.server.set("data/v1/" + key, bytes);
  }
  bool can_peek() const override { return false; }

 private:
  S3Bench bench_;
};

const StoreCase kCases[] = {
    {"S3Path", [] { return std::make_unique<S3Fixture>("path", kKeys); }},
    {"S3VirtualHostWithSession",
     [] {
       return std::make_unique<S3Fixture>(
           "virtual", ServerKeys{"AKID", kKeys.secret_key, "tok/en+=", "us-east-1"});
     }},
    {"S3Anonymous", [] { return std::make_unique<S3Fixture>("path", ServerKeys{}); }},
};
INSTANTIATE_TEST_SUITE_P(S3, StoreConformance, ::testing::ValuesIn(kCases),
                         [](const auto& param) { return param.param.name; });

TEST(S3Store, NamesWhatIsWrongWithBucketKeyAndCredentials) {
  S3Bench bench;
  bench.open_bucket();
  expect_error(bench.read("k", {0, 1}).status(), Code::kNotFound,
               {"s3://data-bucket/pre/k", "NoSuchKey", "no such object"});
  bench.open_bucket("s3://other");
  expect_error(bench.read("k", {0, 1}).status(), Code::kNotFound,
               {"s3://other/k", "NoSuchBucket", "no such bucket"});
  bench.env["AWS_SECRET_ACCESS_KEY"] = "WRONGSECRET";
  bench.open_bucket();
  const Status wrong = bench.read("k", {0, 1}).status();
  expect_error(wrong, Code::kDenied,
               {"SignatureDoesNotMatch", "check the access key", "the environment"});
  EXPECT_EQ(wrong.message().find("WRONGSECRET"), std::string::npos);
  bench.env["AWS_ACCESS_KEY_ID"] = "NOBODY";
  bench.open_bucket();
  expect_error(bench.read("k", {0, 1}).status(), Code::kDenied, {"InvalidAccessKeyId"});
  expect_error(head(*bench.store, bench.how(), "k").status(), Code::kDenied,
               {"403", "credentials"});
  bench.options.anonymous = true;
  bench.open_bucket();
  expect_error(bench.read("k", {0, 1}).status(), Code::kDenied, {"AccessDenied", "not signed"});
}

TEST(S3Store, FindsTheRegionThatTheBucketLivesIn) {
  ServerKeys keys = kKeys;
  keys.region = "eu-central-1";
  S3Bench bench(signed_server(keys));
  bench.server.set("pre/k", "abc");
  bench.open_bucket();
  EXPECT_EQ(*bench.read("k", {0, 3}), "abc");
  EXPECT_EQ(bench.server.seen().size(), 2U);
  EXPECT_EQ(*bench.read("k", {0, 3}), "abc");
  EXPECT_EQ(bench.server.seen().size(), 3U);  // remembered
  bench.open_bucket();
  EXPECT_EQ(head(*bench.store, bench.how(), "k")->size, 3U);  // from a header, without a body
}

TEST(S3Store, AMovedBucketIsFollowedOnceAndOnlyIntoARegion) {
  S3Bench bench;
  bench.server.set("pre/k", "abc");
  bench.server.add(
      {.times = 1, .status = 301, .headers = {{"x-amz-bucket-region", "evil.example.org/x"}}});
  bench.open_bucket();
  expect_error(bench.read("k", {0, 3}).status(), Code::kInvalidArgument, {"301", "region"});
  bench.server.add({.times = -1, .status = 301, .headers = {{"x-amz-bucket-region", "eu-west-1"}}});
  expect_error(bench.read("k", {0, 3}).status(), Code::kInvalidArgument, {"301", "region"});
}

TEST(S3Store, SetsItsClockByTheStoreOnce) {
  for (std::int64_t offset : {-7200, 7200}) {
    FaultServerOptions options = signed_server();
    options.clock_offset = offset;
    S3Bench bench(options);
    bench.server.set("pre/k", "abc");
    bench.open_bucket();
    EXPECT_EQ(*bench.read("k", {0, 3}), "abc");
    EXPECT_EQ(bench.server.seen().size(), 2U);
    bench.open_bucket();
    EXPECT_EQ(head(*bench.store, bench.how(), "k")->size, 3U);
  }
  FaultServerOptions insane = signed_server();
  insane.clock_offset = 40'000'000;
  S3Bench bench(insane);
  bench.open_bucket();
  expect_error(bench.read("k", {0, 3}).status(), Code::kDenied,
               {"RequestTimeTooSkewed", "set the clock"});
}

TEST(S3Store, SlowDownIsThrottlingAndPasses) {
  S3Bench bench;
  bench.server.set("pre/k", "abc");
  bench.server.add({.status = 503, .body = "<Error><Code>SlowDown</Code></Error>"});
  bench.server.add({.status = 400, .body = "<Error><Code>RequestTimeout</Code></Error>"});
  bench.open_bucket();
  EXPECT_EQ(*bench.read("k", {0, 3}), "abc");
  bench.server.add({.times = -1, .status = 503, .body = "<Error><Code>SlowDown</Code></Error>"});
  expect_error(bench.read("k", {0, 3}).status(), Code::kThrottled, {"SlowDown", "attempt 3"});
}

TEST(S3Store, AChangedObjectIsNeverRetriedIntoSilence) {
  S3Bench bench;
  bench.server.set("pre/k", pattern(5000));
  bench.open_bucket();
  const auto info = head(*bench.store, bench.how(), "k");
  bench.server.set("pre/k", pattern(5000, 2));
  const std::size_t before = bench.server.seen().size();
  const auto got = read_range(*bench.store, bench.how(), {.key = "k", .pin = info->pin}, {1, 9});
  expect_error(got.status(), Code::kCorrupt, {"changed", "s3://data-bucket/pre/k"});
  EXPECT_EQ(bench.server.seen().size(), before + 1);
}

TEST(S3Store, HealsFaultsOfWrites) {
  const Fault faults[] = {
      {.method = "PUT", .status = 500},
      {.method = "PUT", .never = true},
      {.method = "PUT", .raw = ""},
      {.method = "PUT", .status = 503, .body = "<Error><Code>SlowDown</Code></Error>"},
      {.method = "PUT", .status = 200, .body = "<Error><Code>InternalError</Code></Error>"},
  };
  for (const Fault& fault : faults) {
    S3Bench bench;
    bench.server.add(fault);
    bench.open_bucket();
    const auto written = put(*bench.store, bench.how(seconds(fault.never ? 2 : 20)), "k", "body");
    if (fault.never) {
      // Nobody knows how long a store may take to store; only the deadline ends that.
      EXPECT_EQ(written.status().code(), Code::kDeadline) << written.status().to_string();
      continue;
    }
    ASSERT_TRUE(written.is_ok()) << written.status().to_string();
    EXPECT_EQ(bench.server.get("pre/k"), "body");
  }
}

// A body of five parts, the last one short.
struct Large : S3Bench {
  Large() {
    body = pattern(kWholeBytesMax + 5'000'001, 5);
    open_bucket();
  }
  Result<ObjectInfo> write(bool only_if_absent = false) {
    return put(*store, how(seconds(60)), "large", body, only_if_absent);
  }
  std::string body;
};

TEST(S3Store, LargeBodiesGoUpInPartsAndHealPartByPart) {
  Large large;
  large.server.add({.method = "POST", .target_part = "uploads", .status = 500});
  large.server.add({.method = "PUT", .target_part = "partNumber=2", .status = 500});
  large.server.add({.method = "PUT", .target_part = "partNumber=4", .raw = ""});
  large.server.add({.method = "POST",
                    .target_part = "uploadId",
                    .status = 200,
                    .body = "<?xml version=\"1.0\"?>\n<Error><Code>InternalError</Code></Error>"});
  const auto written = large.write();
  ASSERT_TRUE(written.is_ok()) << written.status().to_string();
  EXPECT_TRUE(large.server.get("pre/large") == large.body);
  EXPECT_EQ(large.server.open_uploads(), 0U);
  EXPECT_EQ(head(*large.store, large.how(), "large")->pin, written->pin);
  EXPECT_EQ(large.write(true).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(large.server.open_uploads(), 0U);
}

TEST(S3Store, AFailedUploadIsAbortedAndTheOldObjectStays) {
  const Fault faults[] = {
      {.method = "PUT", .target_part = "partNumber=3", .times = -1, .status = 403},
      {.method = "PUT", .target_part = "partNumber=3", .times = -1, .status = 500},
      {.method = "POST", .target_part = "uploadId", .times = -1, .status = 400},
  };
  for (const Fault& fault : faults) {
    Large large;
    large.server.set("pre/large", "old");
    large.server.add(fault);
    const auto written = large.write();
    EXPECT_FALSE(written.is_ok());
    EXPECT_NE(written.status().message().find("s3://data-bucket/pre/large"), std::string::npos);
    EXPECT_EQ(large.server.open_uploads(), 0U);
    EXPECT_EQ(large.server.get("pre/large"), "old");
  }
}

TEST(S3Store, ClosingInTheMiddleOfAnUploadAbortsIt) {
  Large large;
  large.server.add({.method = "PUT", .target_part = "partNumber=2", .times = -1, .never = true});
  std::atomic<int> done = 0;
  PutRequest request;
  request.key = "large";
  request.body = std::make_shared<const std::string>(large.body);
  request.done = [&](const Result<ObjectInfo>& result) {
    EXPECT_EQ(result.status().code(), Code::kCancelled) << result.status().to_string();
    ++done;
  };
  large.store->put(std::move(request));
  while (large.server.open_uploads() == 0) std::this_thread::yield();
  while (large.server.seen().size() < 4) std::this_thread::yield();
  large.store->close();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(large.server.open_uploads(), 0U);
}

TEST(S3Store, ALostAnswerToAConditionalPutIsNotCalledALostRace) {
  S3Bench bench;
  bench.open_bucket();
  // The object is stored, and the answer never arrives.
  bench.server.add({.method = "PUT", .headers = {{"content-length", "100"}}, .cut_at = 0});
  const auto written = put(*bench.store, bench.how(), "k", "body", true);
  expect_error(written.status(), Code::kInvalidArgument, {"an earlier attempt of this put"});
}

}  // namespace
}  // namespace headrace::store
