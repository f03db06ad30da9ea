// Indexes and shards that lie: each is an error that names the place, at little cost.
#include <gtest/gtest.h>

#include "headrace/base/json.h"
#include "headrace/format/mds_reader.h"
#include "headrace/format/test_data.h"

namespace headrace::format {
namespace {

constexpr std::string_view kIndex =
    "{\"shards\": [{\"column_encodings\": [\"int\", \"str\"], \"column_names\": [\"id\", "
    "\"text\"], \"column_sizes\": [8, null], \"compression\": null, \"format\": \"mds\", "
    "\"hashes\": [], \"raw_data\": {\"basename\": \"shard.00000.mds\", \"bytes\": 229, \"hashes\": "
    "{}}, \"samples\": 2, \"size_limit\": 67108864, \"version\": 2, \"zip_data\": null}], "
    "\"version\": 2}";

struct Lie {
  const char* what;  // replaced in kIndex
  const char* by;
  Code code;
  const char* expected;  // part of the message
};

TEST(MdsHostileIndex, NamesShardAndField) {
  const Lie lies[] = {
      {"\"version\": 2}", "\"version\": 3}", Code::kUnimplemented, "'version'"},
      {"\"version\": 2, \"zip", "\"version\": 1, \"zip", Code::kUnimplemented, "shard 0"},
      {"\"samples\": 2", "\"samples\": -2", Code::kCorrupt, "shard 0: 'samples'"},
      {"\"samples\": 2", "\"samples\": 2.0", Code::kCorrupt, "shard 0: 'samples'"},
      {"\"samples\": 2", "\"samples\": NaN", Code::kCorrupt, "index.json"},
      {"\"samples\": 2", "\"samples\": 1000000000", Code::kCorrupt, "'samples' is 1000000000"},
      {"\"samples\": 2", "\"samples\": 18446744073709551615", Code::kCorrupt, "cannot hold"},
      {"\"samples\": 2", "\"samples\": 18446744073709551616", Code::kCorrupt, "'samples'"},
      {"\"samples\": 2", "\"samples\": 2, \"samples\": 2", Code::kCorrupt, "occurs twice"},
      {"\"bytes\": 229", "\"bytes\": 4294967296", Code::kCorrupt, "4 GiB"},
      {"\"bytes\": 229", "\"bytes\": 0", Code::kCorrupt, "cannot hold"},
      {"\"bytes\": 229", "\"bytes\": \"229\"", Code::kCorrupt, "'raw_data.bytes'"},
      {"shard.00000.mds", "../secret", Code::kCorrupt, "'raw_data.basename'"},
      {"shard.00000.mds", "/etc/passwd", Code::kCorrupt, "is absolute"},
      {"shard.00000.mds", "a/../../b", Code::kCorrupt, "'..'"},
      {"shard.00000.mds", "a\\u0000b", Code::kCorrupt, "NUL"},
      {"shard.00000.mds", "", Code::kCorrupt, "is empty"},
      {"\"raw_data\": {", "\"raw_data\": {\"basename\": \"x\", ", Code::kCorrupt, "twice"},
      {"\"hashes\": {}", "\"hashes\": {\"sha256\": \"XYZ\"}", Code::kCorrupt, "hexadecimal"},
      {"\"hashes\": {}", "\"hashes\": [1]", Code::kCorrupt, "'raw_data.hashes'"},
      {"\"compression\": null", "\"compression\": \"zstd:7\"", Code::kUnimplemented, "zstd:7"},
      {"\"format\": \"mds\"", "\"format\": \"json\"", Code::kUnimplemented, "'format' is json"},
      {"\"format\": \"mds\"", "\"format\": \"xsv\"", Code::kUnimplemented, "'format' is xsv"},
      {"\"format\": \"mds\"", "\"format\": \"zip\"", Code::kCorrupt, "'zip'"},
      {"[\"int\", \"str\"]", "[\"int\", \"pkl\"]", Code::kInvalidArgument, "'pkl'"},
      {"[\"int\", \"str\"]", "[\"int\", \"pil\"]", Code::kUnimplemented, "'pil'"},
      {"[\"int\", \"str\"]", "[\"int\"]", Code::kCorrupt, "equal length"},
      {"[\"int\", \"str\"]", "[\"int\", 3]", Code::kCorrupt, "'column_encodings'"},
      {"[\"id\", \"text\"]", "[\"id\", \"id\"]", Code::kCorrupt, "one name twice"},
      {"[\"id\", \"text\"]", "[\"id\", \"\"]", Code::kCorrupt, "empty name"},
      {"[8, null]", "[4, null]", Code::kCorrupt, "'column_sizes' entry 0"},
      {"[8, null]", "[8, 3]", Code::kCorrupt, "'column_sizes' entry 1"},
      {"[8, null]", "[null, null]", Code::kCorrupt, "'column_sizes' entry 0"},
      {"[8, null]", "[8, null, 1]", Code::kCorrupt, "equal length"},
  };
  ASSERT_TRUE(read_mds_index(kIndex).is_ok()) << read_mds_index(kIndex).status().to_string();
  for (const Lie& lie : lies) {
    std::string text(kIndex);
    const std::size_t at = text.find(lie.what);
    ASSERT_NE(at, text.npos) << lie.what;
    text.replace(at, std::string_view(lie.what).size(), lie.by);
    const Status status = read_mds_index(text).status();
    EXPECT_EQ(status.code(), lie.code) << lie.by << ": " << status.to_string();
    EXPECT_NE(status.message().find(lie.expected), std::string::npos)
        << lie.by << ": " << status.to_string();
  }
}

TEST(MdsHostileIndex, RefusesEveryTruncation) {
  for (std::size_t size = 0; size < kIndex.size(); ++size) {
    EXPECT_FALSE(read_mds_index(kIndex.substr(0, size)).is_ok()) << size;
  }
}

TEST(MdsHostileIndex, RefusesOtherDocuments) {
  for (const std::string& text :
       {std::string("[]"), std::string("{}"), std::string("null"), std::string("\xff\xfe"),
        std::string("{\"version\": 2, \"shards\": []}"),
        std::string("{\"version\": 2, \"shards\": [[]]}"), std::string(100000, '[')}) {
    EXPECT_FALSE(read_mds_index(text).is_ok()) << text.substr(0, 40);
  }
}

TEST(MdsHostileIndex, RefusesShardsThatDisagree) {
  const std::string whole(kIndex);
  const std::size_t open = whole.find('[') + 1;
  const std::size_t close = whole.find("], \"version\": 2}", whole.find("zip_data"));
  const std::string shard = whole.substr(open, close - open);
  const auto with_second = [&](std::string_view what, std::string_view by) {
    std::string second = shard;
    if (!what.empty()) second.replace(second.find(what), what.size(), by);
    return read_mds_index("{\"shards\": [" + shard + ", " + second + "], \"version\": 2}").status();
  };
  EXPECT_TRUE(with_second("shard.00000", "shard.00001").is_ok());
  EXPECT_NE(with_second("", "").message().find("shard 1: names the file"), std::string::npos)
      << with_second("", "").message();
  std::string second = "\"column_names\": [\"id\", \"text\"]";
  EXPECT_NE(with_second(second, "\"column_names\": [\"id\", \"words\"]")
                .message()
                .find("shard 1: has other columns than shard 0"),
            std::string::npos);
}

// A shard of two samples of (int, str): header of 16 bytes, no configuration.
std::string small_shard() {
  std::string file;
  for (const std::uint32_t word : {2u, 16u, 28u, 41u}) append_le(file, word);
  file += std::string("\0\0\0\0", 4) + std::string(8, 'i');
  file += std::string("\1\0\0\0", 4) + std::string(8, 'i') + "x";
  return file;
}

std::shared_ptr<Reader> small_reader() {
  std::string index(kIndex);
  index.replace(index.find("229"), 3, "41");
  return std::move(read_mds_index(index)).value();
}

TEST(MdsHostileShard, RefusesTablesThatLie) {
  const auto reader = small_reader();
  ASSERT_TRUE(locator_of(*reader, 0, as_bytes(small_shard())).is_ok());
  const struct {
    std::size_t word;
    std::uint32_t value;
    const char* expected;
  } lies[] = {
      {0, 3, "holds 3 samples and the index says 2"},
      {0, 0xffffffff, "holds 4294967295 samples"},
      {1, 8, "inside its own table"},
      {1, 0, "inside its own table"},
      {2, 15, "places sample 0"},
      {2, 27, "which its columns do not fit"},
      {2, 0xffffffff, "places sample 1"},
      {2, 42, "places sample 1"},
      {3, 40, "ends its last sample at byte 40"},
      {3, 0xffffffff, "ends its last sample"},
  };
  for (const auto& lie : lies) {
    std::string file = small_shard();
    store_le(reinterpret_cast<std::byte*>(file.data() + lie.word * 4), lie.value);
    const Status status = locator_of(*reader, 0, as_bytes(file)).status();
    EXPECT_EQ(status.code(), Code::kCorrupt);
    EXPECT_NE(status.message().find(lie.expected), std::string::npos) << status.to_string();
    EXPECT_NE(status.message().find("shard 0 (shard.00000.mds)"), std::string::npos);
  }
}

TEST(MdsHostileShard, RefusesEveryTruncation) {
  const auto reader = small_reader();
  const std::string file = small_shard();
  for (std::size_t size = 0; size < 16; ++size) {
    EXPECT_EQ(locator_of(*reader, 0, as_bytes(file).first(size)).status().code(), Code::kCorrupt);
  }
  std::vector<FieldValue> values(2);
  for (std::size_t size = 0; size < 13; ++size) {
    EXPECT_EQ(reader->view(as_bytes(file).subspan(28, size), 0, values).code(), Code::kCorrupt);
  }
  EXPECT_TRUE(reader->view(as_bytes(file).subspan(28, 13), 0, values).is_ok());
}

TEST(MdsHostileShard, RefusesSamplesThatLie) {
  const auto reader = small_reader();
  std::vector<FieldValue> values(2);
  const auto view = [&](std::uint32_t length, std::string_view text) {
    std::string sample;
    append_le(sample, length);
    sample += std::string(8, 'i') + std::string(text);
    return reader->view(as_bytes(sample), 0, values);
  };
  EXPECT_TRUE(view(2, "hi").is_ok());
  EXPECT_NE(view(3, "hi").message().find("'text' of 3 bytes passes the end"), std::string::npos);
  EXPECT_NE(view(0xffffffff, "hi").message().find("passes the end"), std::string::npos);
  EXPECT_NE(view(1, "hi").message().find("1 bytes follow the last field"), std::string::npos);
  EXPECT_NE(view(1, "\xff").message().find("field 'text': is not UTF-8"), std::string::npos);
  EXPECT_EQ(reader->view(as_bytes(small_shard()).subspan(28, 13), 1, values).code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace headrace::format
