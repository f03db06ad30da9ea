// What every reader keeps to, whatever its format.
#include "headrace/format/reader.h"

#include <gtest/gtest.h>

#include "headrace/base/key.h"
#include "headrace/format/mds_reader.h"
#include "headrace/format/test_data.h"
#include "headrace/format/test_tar.h"

namespace headrace::format {
namespace {

// A data set with its shards in memory: samples "s0", "s1", ... of a text and a number.
struct Made {
  std::shared_ptr<Reader> reader;
  std::vector<std::string> shards;
  std::string text_field;
};

constexpr std::uint64_t kSamples = 57;

std::vector<FinishedFile> write(std::string_view format, std::vector<Column> columns) {
  WriterOptions options;
  options.columns = std::move(columns);
  options.size_limit = 9000;
  auto builder = std::move(make_dataset_builder(format, options)).value();
  std::vector<FinishedFile> files;
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const auto number = static_cast<std::int64_t>(i);
    const std::string text = "s" + std::to_string(i) + std::string(i * 7 % 400, '.');
    std::vector<FieldValue> values;
    for (const Field& field : builder->schema().fields) {
      values.push_back(field.type.kind == FieldKind::kScalar ? int_value(number)
                                                             : text_value(text));
    }
    HR_CHECK(builder->add("", values, files).is_ok(), "add");
  }
  HR_CHECK(builder->finish(files).is_ok(), "finish");
  return files;
}

Made make_mds() {
  Made made;
  const auto files = write("mds", {{"id", "int"}, {"txt", "str"}});
  made.reader = std::move(read_mds_index(*find_file(files, "index.json").bytes)).value();
  for (std::size_t i = 0; i + 1 < files.size(); ++i) made.shards.push_back(*files[i].bytes);
  made.text_field = "txt";
  return made;
}

Made make_wds() {
  Made made;
  for (const FinishedFile& file : write("wds", {{"id", "int"}, {"txt", "str"}})) {
    made.shards.push_back(*file.bytes);
  }
  // An archive without samples is legal.
  made.shards.insert(made.shards.begin() + 1, std::string(1024, '\0'));
  made.reader = read_tars(made.shards);
  made.text_field = "txt";
  return made;
}

class ReaderConformance : public testing::TestWithParam<Made (*)()> {
 protected:
  const Made made_ = GetParam()();
  const Reader& reader_ = *made_.reader;
};

TEST_P(ReaderConformance, DescribesItsShards) {
  ASSERT_EQ(reader_.shards().size(), made_.shards.size());
  std::uint64_t samples = 0;
  for (std::size_t s = 0; s < made_.shards.size(); ++s) {
    const ShardInfo& info = reader_.shards()[s];
    EXPECT_EQ(info.bytes, made_.shards[s].size());
    EXPECT_TRUE(check_key(info.name).is_ok());
    samples += info.samples;
  }
  EXPECT_EQ(samples, kSamples);
}

TEST_P(ReaderConformance, FindsEverySampleOnceAndInOrder) {
  const std::size_t column = *reader_.schema().find(made_.text_field);
  std::uint64_t at = 0;
  for (std::uint32_t s = 0; s < made_.shards.size(); ++s) {
    const ByteView shard = as_bytes(made_.shards[s]);
    const auto locator = locator_of(reader_, s, shard);
    ASSERT_TRUE(locator.is_ok()) << locator.status().to_string();
    for (std::uint64_t i = 0; i < reader_.shards()[s].samples; ++i, ++at) {
      const auto row = read_row(reader_, **locator, shard, i);
      ASSERT_TRUE(row.is_ok()) << row.status().to_string();
      EXPECT_EQ((*row)[column], "s" + std::to_string(at) + std::string(at * 7 % 400, '.'));
    }
  }
  EXPECT_EQ(at, kSamples);
}

TEST_P(ReaderConformance, LocatesInsideTheShardAndWithoutOverlap) {
  for (std::uint32_t s = 0; s < made_.shards.size(); ++s) {
    const auto locator = std::move(locator_of(reader_, s, as_bytes(made_.shards[s]))).value();
    FetchUnit unit;
    unit.codecs.push_back(UnitCodec::kZstd);  // of another data set, to be cleared
    std::uint64_t end = 0;
    for (std::uint64_t i = 0; i < reader_.shards()[s].samples; ++i) {
      ASSERT_TRUE(locator->locate(i, unit).is_ok());
      ASSERT_EQ(unit.extents.size(), 1u);
      EXPECT_EQ(unit.extents[0].object, s);
      EXPECT_GE(unit.extents[0].range.offset, end);
      end = unit.extents[0].range.end();
      EXPECT_LE(end, made_.shards[s].size());
      EXPECT_EQ(unit.decoded_bytes, unit.extents[0].range.length);
      EXPECT_EQ(unit.first_sample, i);
      EXPECT_EQ(unit.samples, 1u);
      EXPECT_TRUE(unit.codecs.empty());
    }
    EXPECT_EQ(locator->locate(reader_.shards()[s].samples, unit).code(), Code::kInvalidArgument);
    EXPECT_EQ(locator->locate(~std::uint64_t{0}, unit).code(), Code::kInvalidArgument);
  }
}

TEST_P(ReaderConformance, KeepsValuesInsideTheUnit) {
  const ByteView shard = as_bytes(made_.shards[0]);
  const auto locator = std::move(locator_of(reader_, 0, shard)).value();
  FetchUnit unit;
  ASSERT_TRUE(locator->locate(0, unit).is_ok());
  const ByteRange range = unit.extents[0].range;
  const ByteView bytes = shard.subspan(range.offset, range.length);
  std::vector<FieldValue> values(reader_.schema().fields.size());
  ASSERT_TRUE(reader_.view(bytes, 0, values).is_ok());
  for (const FieldValue& value : values) {
    ASSERT_FALSE(value.is_null);
    EXPECT_GE(value.bytes.data(), bytes.data());
    EXPECT_LE(value.bytes.data() + value.bytes.size(), bytes.data() + bytes.size());
  }
}

TEST_P(ReaderConformance, NeverTakesATruncatedUnitForASample) {
  const ByteView shard = as_bytes(made_.shards[0]);
  const auto locator = std::move(locator_of(reader_, 0, shard)).value();
  FetchUnit unit;
  ASSERT_TRUE(locator->locate(1, unit).is_ok());
  const ByteRange range = unit.extents[0].range;
  std::vector<FieldValue> values(reader_.schema().fields.size());
  // The padding of the last file of a tar sample is no part of any value.
  const std::uint64_t padding = reader_.format_name() == "wds" ? kTarBlock : 0;
  for (std::uint64_t size = 0; size + padding < range.length; ++size) {
    EXPECT_EQ(reader_.view(shard.subspan(range.offset, size), 0, values).code(), Code::kCorrupt)
        << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ReaderConformance, testing::Values(&make_mds, &make_wds),
                         [](const auto& made) { return made.index == 0 ? "Mds" : "Wds"; });

}  // namespace
}  // namespace headrace::format
