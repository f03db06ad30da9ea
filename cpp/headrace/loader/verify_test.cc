// Indexing and verifying, over stores that answer as they should and others.
#include "headrace/loader/verify.h"

#include <map>
#include <set>

#include "headrace/format/mds_reader.h"
#include "headrace/loader/index_reader.h"
#include "headrace/loader/indexer.h"
#include "headrace/loader/test_pack.h"
#include "headrace/trust/hasher.h"

namespace headrace::loader {
namespace {

using Files = std::map<std::string, std::string>;

// The files of a packed data set.
Files packed(const std::string& format, std::vector<std::string> hashes = {}) {
  Files files;
  format::WriterOptions options = pack_options(format).writer;
  options.hashes = std::move(hashes);
  options.hash = trust::hash_hex;
  auto builder = std::move(format::make_dataset_builder(format, options)).value();
  std::vector<format::FinishedFile> done;
  const std::string bin(500, 'b');
  for (int i = 0; i < 100; ++i) {
    const std::string text = "text " + std::to_string(i);
    const format::FieldValue values[] = {pack_value(bin), pack_value(text)};
    HR_CHECK(builder->add("", values, done).is_ok(), "add");
  }
  HR_CHECK(builder->finish(done).is_ok(), "finish");
  for (const format::FinishedFile& file : done) files[file.name] = *file.bytes;
  return files;
}

struct Remote {
  explicit Remote(PackBench& bench, const Files& files, store::MemoryOptions options = {})
      : store(bench.deps(), std::move(options)) {
    for (const auto& [name, bytes] : files) {
      store.set(name, bytes);
      if (name.ends_with(".tar")) index.shards.push_back(name);
    }
  }
  store::MemoryStore store;
  IndexerOptions index;
};

std::shared_ptr<format::Reader> open_index(const std::string& bytes) {
  auto owner = std::make_shared<std::string>(bytes);
  auto index = std::move(trust::IndexFile::parse(owner, as_bytes(*owner))).value();
  return std::move(reader_from_index(index)).value();
}

TEST(Indexer, GivesTheSameBytesForAnyExecutorAndPart) {
  const Files files = packed("wds");
  std::set<std::string> outcomes;
  for (const std::uint64_t part : {4096u, 5000u, 1u << 20}) {
    for (const bool is_virtual : {false, true}) {
      PackBench bench(is_virtual ? std::make_unique<exec::VirtualExecutor>()
                                 : exec::make_thread_executor(2));
      Remote remote(bench, files, {.latency = std::chrono::milliseconds(1), .can_peek = false});
      remote.index.stream.part_bytes = part;
      std::uint64_t last = 0;
      remote.index.progress = [&](std::uint64_t bytes, std::uint64_t total) {
        EXPECT_GE(bytes, last);
        EXPECT_GE(total, bytes);
        last = bytes;
      };
      const auto built = build_index(remote.store, bench.executor(), remote.index);
      ASSERT_TRUE(built.is_ok()) << built.status().to_string();
      EXPECT_EQ(built->samples, 100u);
      EXPECT_EQ(built->stored_bytes, last);
      outcomes.insert(built->bytes);
    }
  }
  EXPECT_EQ(outcomes.size(), 1u);
}

TEST(Indexer, AgreesWithTheIndexThatPackingWrites) {
  PackBench bench;
  auto writer =
      std::move(DatasetWriter::create(bench.path("out"), pack_options("wds"), bench.deps()))
          .value();
  ASSERT_TRUE(write_samples(*writer, 100).is_ok());
  ASSERT_TRUE(writer->finish().is_ok());
  auto store = std::move(store::open_store(bench.path("out"), {}, bench.deps())).value();
  Remote remote(bench, packed("wds"));
  const auto built = build_index(*store, bench.executor(), remote.index);
  ASSERT_TRUE(built.is_ok()) << built.status().to_string();
  const auto saved = store::read_whole(*store, bench.how(), "headrace.index", 1 << 20);
  EXPECT_EQ(saved->bytes, built->bytes);
  EXPECT_EQ(save_index(*store, bench.how(), *built, false).code(), Code::kInvalidArgument);
  EXPECT_TRUE(save_index(*store, bench.how(), *built, true).is_ok());
}

TEST(Indexer, NamesTheShardThatFails) {
  PackBench bench(std::make_unique<exec::VirtualExecutor>());
  Files files = packed("wds");
  files["shard-000001.tar"].resize(3000);
  Remote cut(bench, files);
  const Status truncated = build_index(cut.store, bench.executor(), cut.index).status();
  EXPECT_EQ(truncated.code(), Code::kCorrupt);
  EXPECT_NE(truncated.message().find("shard-000001.tar at byte 3000"), std::string::npos)
      << truncated.to_string();

  Remote missing(bench, packed("wds"));
  missing.index.shards.push_back("shard-000099.tar");
  const Status absent = build_index(missing.store, bench.executor(), missing.index).status();
  EXPECT_EQ(absent.code(), Code::kNotFound);
  EXPECT_NE(absent.message().find("shard-000099.tar"), std::string::npos);

  IndexerOptions bad;
  EXPECT_EQ(build_index(cut.store, bench.executor(), bad).status().code(), Code::kInvalidArgument);
  bad.shards = {"../a.tar"};
  EXPECT_EQ(build_index(cut.store, bench.executor(), bad).status().code(), Code::kInvalidArgument);
  bad.shards = {"shard-000000.tar", "shard-000000.tar"};
  EXPECT_EQ(build_index(cut.store, bench.executor(), bad).status().code(), Code::kInvalidArgument);
}

TEST(Indexer, EndsWhenSomebodyAsksItTo) {
  PackBench bench(std::make_unique<exec::VirtualExecutor>());
  Remote remote(bench, packed("wds"));
  std::stop_source stop;
  stop.request_stop();
  remote.index.stream.stop = stop.get_token();
  EXPECT_EQ(build_index(remote.store, bench.executor(), remote.index).status().code(),
            Code::kCancelled);
}

// Verifies the files of an MDS or tar data set against the index of the whole ones.
VerifyReport verify(PackBench& bench, const std::string& format, const Files& whole,
                    const Files& files, std::uint64_t part_bytes = 5000) {
  std::shared_ptr<format::Reader> reader;
  if (format == "mds") {
    reader = std::move(format::read_mds_index(whole.at("index.json"))).value();
  } else {
    Remote good(bench, whole);
    reader = open_index(build_index(good.store, bench.executor(), good.index)->bytes);
  }
  Remote remote(bench, files, {.can_peek = false});
  VerifyOptions options;
  options.stream.part_bytes = part_bytes;
  return std::move(verify_dataset(remote.store, *reader, bench.executor(), options)).value();
}

TEST(Verify, FindsNothingWrongWithGoodData) {
  for (const char* format : {"mds", "wds"}) {
    for (const std::uint64_t part : {4096u, 1u << 20}) {
      PackBench bench(std::make_unique<exec::VirtualExecutor>());
      const Files files = packed(format);
      const VerifyReport report = verify(bench, format, files, files, part);
      EXPECT_TRUE(report.is_good()) << report.problems[0].what;
      EXPECT_EQ(report.samples, 100u);
      EXPECT_EQ(report.shards_without_hash, format == std::string("mds") ? report.shards : 0);
    }
  }
}

TEST(Verify, NoticesEveryFlippedByteThatAHashCovers) {
  PackBench bench(std::make_unique<exec::VirtualExecutor>());
  const Files whole = packed("mds", {"xxh3_64", "sha256"});
  for (const std::size_t at : {0u, 5u, 400u, 9000u}) {
    Files files = whole;
    files["shard.00001.mds"][at] ^= 0x40;
    const VerifyReport report = verify(bench, "mds", whole, files);
    ASSERT_GE(report.problems.size(), 2u) << at;
    for (const Problem& problem : report.problems) EXPECT_EQ(problem.shard, 1u);
    EXPECT_NE(report.problems.back().what.find("xxh3_64"), std::string::npos);
    EXPECT_EQ(report.shards, whole.size() - 1);
  }
}

TEST(Verify, NamesTheSampleWhoseStructureIsBroken) {
  PackBench bench(std::make_unique<exec::VirtualExecutor>());
  const Files whole = packed("mds");
  Files files = whole;
  const std::size_t at = files["shard.00000.mds"].find("text 3");
  files["shard.00000.mds"][at] = '\xff';
  const VerifyReport report = verify(bench, "mds", whole, files);
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_EQ(report.problems[0].sample, 3u);
  EXPECT_NE(report.problems[0].what.find("'txt'"), std::string::npos);
  ASSERT_TRUE(report.problems[0].offset.has_value());
  EXPECT_LT(*report.problems[0].offset, at);
}

TEST(Verify, GoesOnAfterAShardThatIsMissingOrCut) {
  for (const std::string format : {"mds", "wds"}) {
    PackBench bench(std::make_unique<exec::VirtualExecutor>());
    const Files whole = packed(format);
    Files files = whole;
    const std::string first = format == "mds" ? "shard.00000.mds" : "shard-000000.tar";
    const std::string second = format == "mds" ? "shard.00001.mds" : "shard-000001.tar";
    const std::string third = format == "mds" ? "shard.00002.mds" : "shard-000002.tar";
    files.erase(first);
    files[second].pop_back();
    files[third][0] = '\x7f';
    const VerifyReport report = verify(bench, format, whole, files);
    std::set<std::uint32_t> shards;
    for (const Problem& problem : report.problems) shards.insert(problem.shard);
    EXPECT_EQ(shards, (std::set<std::uint32_t>{0, 1, 2})) << format;
    EXPECT_NE(report.problems[0].object.find(first), std::string::npos);
    EXPECT_GT(report.samples, 0u);
  }
}

TEST(Verify, CountsWhatItDoesNotKeep) {
  PackBench bench(std::make_unique<exec::VirtualExecutor>());
  const Files whole = packed("mds");
  Files files = whole;
  std::string& shard = files["shard.00000.mds"];
  for (std::size_t at = shard.find("text"); at != shard.npos; at = shard.find("text")) {
    shard[at] = '\xff';
  }
  const auto reader = std::move(format::read_mds_index(whole.at("index.json"))).value();
  Remote remote(bench, files);
  VerifyOptions options;
  options.problems_max = 3;
  const auto report = verify_dataset(remote.store, *reader, bench.executor(), options);
  EXPECT_EQ(report->problems.size(), 3u);
  EXPECT_EQ(report->problems_left_out, reader->shards()[0].samples - 3);
}

}  // namespace
}  // namespace headrace::loader
