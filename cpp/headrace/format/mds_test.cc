#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "headrace/format/mds_reader.h"
#include "headrace/format/test_data.h"

namespace headrace::format {
namespace {

WriterOptions two_columns() {
  WriterOptions options;
  options.columns = {{"text", "str"}, {"id", "int"}};
  return options;
}

void add(DatasetBuilder& builder, std::int64_t id, std::string_view text,
         std::vector<FinishedFile>& out) {
  const FieldValue values[] = {int_value(id), text_value(text)};
  const Status status = builder.add("", values, out);
  ASSERT_TRUE(status.is_ok()) << status.to_string();
}

std::string golden(const std::string& name) {
  std::ifstream in(std::string(HEADRACE_GOLDEN_DIR) + "/mds/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(MdsWriter, WritesTheGoldenBytes) {
  auto builder = std::move(make_dataset_builder("mds", two_columns())).value();
  std::vector<FinishedFile> files;
  add(*builder, 7, "hi", files);
  add(*builder, -1, "\xc3\xa9", files);
  ASSERT_TRUE(builder->finish(files).is_ok());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].name, "shard.00000.mds");
  EXPECT_EQ(files[1].name, "index.json");
  EXPECT_EQ(files[0].bytes->size(), 229u);
  EXPECT_EQ(to_hex(as_bytes(*files[0].bytes)) + "\n", golden("two-columns.shard.hex"));
  EXPECT_EQ(*files[1].bytes + "\n", golden("two-columns.index.json"));
  EXPECT_EQ(to_hex(sha256(as_bytes(*files[0].bytes))),
            "54fa69972d180ec532ba8e7dd3e8b230d86b937e809883854a16bffeaee3ac18");
  EXPECT_EQ(to_hex(sha256(as_bytes(*files[1].bytes))),
            "5c470079b84bcce2f9f541cdcd17b8b0e38d91905f3bb52935b3abd383ac564f");
}

TEST(MdsWriter, FlushesBeforeTheLimitAndNeverWritesAnEmptyShard) {
  WriterOptions options = two_columns();
  options.size_limit = 300;
  options.hashes = {"sha256"};
  options.hash = test_hash;
  auto builder = std::move(make_dataset_builder("mds", options)).value();
  std::vector<FinishedFile> files;
  add(*builder, 0, std::string(1000, 'x'), files);  // alone above the limit
  for (std::int64_t i = 1; i < 40; ++i) {
    add(*builder, i, std::string(static_cast<std::size_t>(i), 'y'), files);
  }
  ASSERT_TRUE(builder->finish(files).is_ok());
  const auto reader = std::move(read_mds_index(*files.back().bytes)).value();
  ASSERT_EQ(reader->shards().size(), files.size() - 1);
  std::uint64_t samples = 0;
  for (std::size_t s = 0; s < reader->shards().size(); ++s) {
    const ShardInfo& info = reader->shards()[s];
    EXPECT_GT(info.samples, 0u);
    EXPECT_EQ(info.bytes, files[s].bytes->size());
    EXPECT_TRUE(s == 0 || info.bytes <= 300u) << info.bytes;
    ASSERT_EQ(info.hashes.size(), 1u);
    EXPECT_EQ(info.hashes[0].algorithm, "sha256");
    EXPECT_EQ(info.hashes[0].hex, to_hex(sha256(as_bytes(*files[s].bytes))));
    samples += info.samples;
  }
  EXPECT_EQ(samples, 40u);
  EXPECT_EQ(reader->shards()[0].samples, 1u);
}

TEST(MdsWriter, RefusesByName) {
  const auto message = [](WriterOptions options) {
    return make_dataset_builder("mds", std::move(options)).status().to_string();
  };
  WriterOptions options = two_columns();
  options.columns.push_back({"id", "str"});
  EXPECT_NE(message(options).find("'id' is given twice"), std::string::npos);
  options.columns = {{"a", "pkl"}};
  EXPECT_NE(message(options).find("column 'a': the encoding 'pkl'"), std::string::npos);
  options.columns = {};
  EXPECT_NE(message(options).find("at least one column"), std::string::npos);
  options = two_columns();
  options.size_limit = std::uint64_t{1} << 32;
  EXPECT_NE(message(options).find("size_limit is 4294967296"), std::string::npos);
  options = two_columns();
  options.hashes = {"md99"};
  EXPECT_NE(message(options).find("no function"), std::string::npos);
  options.hash = test_hash;
  EXPECT_NE(message(options).find("md99"), std::string::npos);
  EXPECT_EQ(make_dataset_builder("zarr", two_columns()).status().code(), Code::kInvalidArgument);
}

TEST(MdsWriter, KeepsAGoodDataSetAfterABadSample) {
  auto builder = std::move(make_dataset_builder("mds", two_columns())).value();
  std::vector<FinishedFile> files;
  add(*builder, 7, "hi", files);
  const std::int64_t id = 8;
  const FieldValue bad[] = {int_value(id), FieldValue{}};
  const Status status = builder->add("", bad, files);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("column 'text'"), std::string::npos);
  EXPECT_EQ(builder->add("", std::span(bad, 1), files).code(), Code::kInvalidArgument);
  add(*builder, -1, "\xc3\xa9", files);
  ASSERT_TRUE(builder->finish(files).is_ok());
  EXPECT_EQ(to_hex(as_bytes(*files[0].bytes)) + "\n", golden("two-columns.shard.hex"));
  EXPECT_EQ(builder->finish(files).code(), Code::kInvalidArgument);
}

TEST(MdsWriter, RefusesADataSetOfNothing) {
  auto builder = std::move(make_dataset_builder("mds", two_columns())).value();
  std::vector<FinishedFile> files;
  EXPECT_EQ(builder->finish(files).code(), Code::kInvalidArgument);
  EXPECT_TRUE(files.empty());
}

TEST(MdsReader, AsksForItsIndexFirst) {
  Fetched have;
  const auto step = mds_format().load_index(have);
  ASSERT_EQ(step->needs.size(), 1u);
  EXPECT_EQ(step->needs[0].object, "index.json");
  EXPECT_EQ(step->needs[0].length, 0u);
  have.objects["index.json"] =
      std::make_shared<const std::string>(golden("two-columns.index.json"));
  const auto done = mds_format().load_index(have);
  ASSERT_TRUE(done.is_ok()) << done.status().to_string();
  ASSERT_NE(done->reader, nullptr);
  EXPECT_EQ(done->reader->format_name(), "mds");
  EXPECT_EQ(self_indexed_formats().size(), 1u);
}

TEST(MdsReader, AcceptsAnEmptyShardAndSubdirectories) {
  const std::string shard =
      "{\"version\": 2, \"format\": \"mds\", \"compression\": null, \"hashes\": [], \"zip_data\": "
      "null, \"column_names\": [\"a\"], \"column_encodings\": [\"int\"], \"column_sizes\": [8], ";
  const auto reader = read_mds_index(
      "{\"version\": 2, \"shards\": [" + shard +
      "\"samples\": 0, \"raw_data\": {\"basename\": \"x/s0\", \"bytes\": 100, \"hashes\": {}}}, " +
      shard +
      "\"samples\": 1, \"raw_data\": {\"basename\": \"y/s0\", \"bytes\": 20, \"hashes\": {}}}]}");
  ASSERT_TRUE(reader.is_ok()) << reader.status().to_string();
  const Reader& mds = **reader;
  std::string empty(100, 'c');
  std::memcpy(empty.data(), "\0\0\0\0\x64\0\0\0", 8);
  const auto locator = locator_of(mds, 0, as_bytes(empty));
  ASSERT_TRUE(locator.is_ok()) << locator.status().to_string();
  FetchUnit unit;
  EXPECT_EQ((*locator)->locate(0, unit).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace headrace::format
