#include "headrace/loader/dataset_writer.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "headrace/base/sha256.h"
#include "headrace/format/mds_reader.h"
#include "headrace/loader/test_pack.h"

namespace headrace::loader {
namespace {

std::string content(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void place(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

// A whole data set of `samples` samples at bench.path("out").
Status pack(PackBench& bench, std::size_t samples, bool overwrite = false,
            const std::string& format = "mds") {
  DatasetWriterOptions options = pack_options(format);
  options.overwrite = overwrite;
  HR_ASSIGN(const auto writer, DatasetWriter::create(bench.path("out"), options, bench.deps()));
  HR_TRY(write_samples(*writer, samples));
  return writer->finish();
}

std::uint64_t packed_samples(PackBench& bench) {
  const auto reader = format::read_mds_index(content(bench.path("out/index.json")));
  std::uint64_t samples = 0;
  for (const auto& shard : (*reader)->shards()) samples += shard.samples;
  return samples;
}

TEST(DatasetWriter, MakesTheSetAppearAtOnce) {
  PackBench bench;
  auto writer = std::move(DatasetWriter::create("file://" + bench.path("a/out"),
                                                pack_options("mds"), bench.deps()))
                    .value();
  ASSERT_TRUE(write_samples(*writer, 100).is_ok());
  EXPECT_EQ(bench.listing("a"), "out.partial");
  EXPECT_GT(writer->progress().shards, 0u);
  ASSERT_TRUE(writer->finish().is_ok());
  EXPECT_EQ(writer->progress().samples, 100u);
  EXPECT_EQ(bench.listing("a"), "out");
  EXPECT_EQ(bench.listing("a/out"),
            "index.json shard.00000.mds shard.00001.mds shard.00002.mds shard.00003.mds "
            "shard.00004.mds shard.00005.mds");
  EXPECT_EQ(writer->finish().code(), Code::kInvalidArgument);
}

TEST(DatasetWriter, WritesTheSameBytesForAnyExecutor) {
  std::string digests[2];
  for (const int threads : {1, 4}) {
    PackBench bench(exec::make_thread_executor(static_cast<std::size_t>(threads)));
    ASSERT_TRUE(pack(bench, 60, false, "wds").is_ok());
    for (const char* name : {"shard-000000.tar", "shard-000001.tar", "headrace.index"}) {
      digests[threads == 1 ? 0 : 1] += to_hex(sha256(as_bytes(content(bench.path("out/") + name))));
    }
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(DatasetWriter, LeavesNothingWhenAbandoned) {
  PackBench bench;
  {
    auto writer =
        std::move(DatasetWriter::create(bench.path("out"), pack_options("wds"), bench.deps()))
            .value();
    ASSERT_TRUE(write_samples(*writer, 100).is_ok());
  }
  EXPECT_EQ(bench.listing(), "");
}

TEST(DatasetWriter, RefusesAPlaceThatIsTaken) {
  PackBench bench;
  ASSERT_TRUE(pack(bench, 10).is_ok());
  const Status taken = pack(bench, 20);
  EXPECT_EQ(taken.code(), Code::kInvalidArgument);
  EXPECT_NE(taken.message().find(bench.path("out")), std::string::npos);
  EXPECT_EQ(packed_samples(bench), 10u);
  EXPECT_EQ(bench.listing(), "out");

  place(bench.path("precious/thesis.txt"), "years");
  DatasetWriterOptions options = pack_options("mds");
  options.overwrite = true;
  EXPECT_EQ(DatasetWriter::create(bench.path("precious"), options, bench.deps()).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(DatasetWriter::create(bench.path("precious/thesis.txt"), options, bench.deps())
                .status()
                .code(),
            Code::kInvalidArgument);
  EXPECT_EQ(content(bench.path("precious/thesis.txt")), "years");
  EXPECT_EQ(DatasetWriter::create("/", options, bench.deps()).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(DatasetWriter::create("", options, bench.deps()).status().code(),
            Code::kInvalidArgument);
}

TEST(DatasetWriter, ReplacesAWholeSetByAWholeSet) {
  PackBench bench;
  ASSERT_TRUE(pack(bench, 100).is_ok());
  ASSERT_TRUE(pack(bench, 7, true).is_ok());
  EXPECT_EQ(packed_samples(bench), 7u);
  EXPECT_EQ(bench.listing(), "out");
  EXPECT_EQ(bench.listing("out"), "index.json shard.00000.mds");
  // An empty folder is free to take.
  std::filesystem::remove_all(bench.path("out"));
  std::filesystem::create_directory(bench.path("out"));
  EXPECT_TRUE(pack(bench, 3).is_ok());
}

TEST(DatasetWriter, ClearsWhatAKilledRunLeft) {
  PackBench bench;
  place(bench.path("out.partial/.headrace-staging"), "");
  place(bench.path("out.partial/shard.00099.mds"), "half");
  ASSERT_TRUE(pack(bench, 10).is_ok());
  EXPECT_EQ(bench.listing("out"), "index.json shard.00000.mds");

  place(bench.path("ds.partial/notes.txt"), "mine");
  const Status refused =
      DatasetWriter::create(bench.path("ds"), pack_options("mds"), bench.deps()).status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_EQ(content(bench.path("ds.partial/notes.txt")), "mine");
}

TEST(DatasetWriter, KeepsASecondWriterOut) {
  PackBench bench;
  auto first =
      std::move(DatasetWriter::create(bench.path("out"), pack_options("mds"), bench.deps()))
          .value();
  const Status second =
      DatasetWriter::create(bench.path("out"), pack_options("mds"), bench.deps()).status();
  EXPECT_EQ(second.code(), Code::kUnavailable);
  EXPECT_NE(second.message().find("another process"), std::string::npos);
  ASSERT_TRUE(write_samples(*first, 10).is_ok());
  ASSERT_TRUE(first->finish().is_ok());
  EXPECT_EQ(packed_samples(bench), 10u);
}

// A limit of file size stands in for a full disk: the write fails in the same place.
TEST(DatasetWriter, KeepsTheOldSetWhenTheDiskIsFull) {
  PackBench bench;
  ASSERT_TRUE(pack(bench, 10).is_ok());
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit old_limit;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  struct rlimit small = old_limit;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status full = pack(bench, 100, true);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  ::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(full.code(), Code::kExhausted) << full.to_string();
  EXPECT_NE(full.message().find(bench.path("out.partial")), std::string::npos);
  EXPECT_EQ(bench.listing(), "out");
  EXPECT_EQ(packed_samples(bench), 10u);
}

TEST(DatasetWriter, GoesOnAfterABadSample) {
  PackBench bench;
  auto writer =
      std::move(DatasetWriter::create(bench.path("out"), pack_options("mds"), bench.deps()))
          .value();
  const format::FieldValue bad[] = {pack_value("x"), pack_value("\xff")};
  const Status status = writer->write("", bad);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("column 'txt'"), std::string::npos);
  ASSERT_TRUE(write_samples(*writer, 3).is_ok());
  ASSERT_TRUE(writer->finish().is_ok());
  EXPECT_EQ(packed_samples(bench), 3u);
}

// Writes down the order of puts and fails one of them.
class WatchedStore final : public store::ObjectStore {
 public:
  WatchedStore(const store::StoreDeps& deps, std::vector<std::string>& log, std::string failing)
      : inner_(deps), executor_(deps.executor), log_(log), failing_(std::move(failing)) {}
  store::MemoryStore& inner() { return inner_; }
  void submit(store::ReadRequest request) override { inner_.submit(std::move(request)); }
  Result<std::optional<store::Peeked>> peek(const store::ObjectRef& object) override {
    return inner_.peek(object);
  }
  std::string describe(std::string_view key) const override { return inner_.describe(key); }
  void close() override { inner_.close(); }
  void head(store::HeadRequest request) override { inner_.head(std::move(request)); }
  void put(store::PutRequest request) override {
    log_.push_back(request.key);
    if (request.key != failing_) return inner_.put(std::move(request));
    executor_.post([done = request.done] { done(denied("no right to write here")); });
  }
  void remove(store::RemoveRequest request) override {
    log_.push_back("-" + request.key);
    inner_.remove(std::move(request));
  }

 private:
  store::MemoryStore inner_;
  exec::Executor& executor_;
  std::vector<std::string>& log_;
  const std::string failing_;
};

TEST(DatasetWriter, WritesTheIndexLastToARemoteStore) {
  for (const char* format : {"mds", "wds"}) {
    PackBench bench(std::make_unique<exec::VirtualExecutor>());
    std::vector<std::string> log;
    auto writer =
        std::move(DatasetWriter::create(std::make_unique<WatchedStore>(bench.deps(), log, ""),
                                        pack_options(format), bench.deps()))
            .value();
    ASSERT_TRUE(write_samples(*writer, 40).is_ok());
    ASSERT_TRUE(writer->finish().is_ok());
    ASSERT_GT(log.size(), 2u);
    const std::string_view index =
        format == std::string_view("mds") ? "index.json" : "headrace.index";
    EXPECT_EQ(log.back(), index);
    EXPECT_EQ(std::count(log.begin(), log.end(), index), 1);
  }
}

TEST(DatasetWriter, WritesNoIndexAfterAFailedShard) {
  PackBench bench(std::make_unique<exec::VirtualExecutor>());
  std::vector<std::string> log;
  auto writer = std::move(DatasetWriter::create(
                              std::make_unique<WatchedStore>(bench.deps(), log, "shard.00001.mds"),
                              pack_options("mds"), bench.deps()))
                    .value();
  const Status wrote = write_samples(*writer, 100);
  const Status finished = writer->finish();
  EXPECT_EQ(finished.code(), Code::kDenied);
  EXPECT_TRUE(wrote.is_ok() || wrote.code() == Code::kDenied);
  EXPECT_EQ(std::count(log.begin(), log.end(), "index.json"), 0);
}

TEST(DatasetWriter, OverwritesARemoteSetOnlyWhenAsked) {
  PackBench bench(std::make_unique<exec::VirtualExecutor>());
  std::vector<std::string> log;
  const auto create = [&](bool overwrite) {
    auto store = std::make_unique<WatchedStore>(bench.deps(), log, "");
    store->inner().set("index.json", "{}");
    DatasetWriterOptions options = pack_options("mds");
    options.overwrite = overwrite;
    return DatasetWriter::create(std::move(store), options, bench.deps());
  };
  EXPECT_EQ(create(false).status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(log.empty());
  auto writer = create(true);
  ASSERT_TRUE(writer.is_ok()) << writer.status().to_string();
  EXPECT_EQ(log, std::vector<std::string>{"-index.json"});
  ASSERT_TRUE(write_samples(**writer, 3).is_ok());
  EXPECT_TRUE((*writer)->finish().is_ok());
}

}  // namespace
}  // namespace headrace::loader
