#include "headrace/trust/index.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "headrace/trust/hasher.h"
#include "headrace/trust/index_layout.h"

namespace headrace::trust {
namespace {

Json small_schema() {
  return *parse_json(
      "{\"fields\": [{\"encoding\": \"jpg\", \"name\": \"jpg\", \"type\": "
      "{\"kind\": \"media\", \"media\": \"jpeg\"}}]}");
}

Result<std::string> small_index() {
  IndexBuilder builder("wds", small_schema(), "0.1.0");
  const ByteRange first[] = {{0, 1024}, {1024, 2048}};
  const ByteRange last[] = {{512, 512}};
  HR_TRY(builder.add_shard({"shard-000000.tar", "", 4096, 0, 0, sha256(as_bytes("one"))}, first));
  HR_TRY(builder.add_shard({"empty.tar", "etag-2", 1024, 0, 0, {}}, {}));
  HR_TRY(builder.add_shard({"x/shard-000001.tar", "\"e\"", 2048, 0, 0, sha256(as_bytes("two"))},
                           last));
  return builder.finish();
}

// Keeps the bytes at an address that is a multiple of 8.
Result<std::shared_ptr<const IndexFile>> parse(std::string bytes) {
  auto owner = std::make_shared<std::string>(std::move(bytes));
  return IndexFile::parse(owner, as_bytes(*owner));
}

// Makes the checksums right again, so that what lies behind them is tested.
std::string repaired(std::string file) {
  IndexHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  for (std::size_t i = 0; i < 3; ++i) {
    header.table[i].checksum =
        xxh3_64(as_bytes(file).subspan(header.table[i].offset, header.table[i].length));
  }
  header.checksum = index_header_checksum(header);
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

IndexHeader header_of(const std::string& file) {
  IndexHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  return header;
}

std::string with_header(std::string file, const IndexHeader& header) {
  std::memcpy(file.data(), &header, sizeof header);
  return repaired(std::move(file));
}

// Record `number` changed by `change`.
template <typename F>
std::string with_record(std::string file, std::size_t number, F change) {
  const std::size_t at = header_of(file).table[2].offset + number * sizeof(IndexRecord);
  IndexRecord record;
  std::memcpy(&record, file.data() + at, sizeof record);
  change(record);
  std::memcpy(file.data() + at, &record, sizeof record);
  return repaired(std::move(file));
}

TEST(Index, ReadsBackWhatWasBuilt) {
  const auto index = parse(*small_index());
  ASSERT_TRUE(index.is_ok()) << index.status().to_string();
  const IndexFile& file = **index;
  EXPECT_EQ(file.format_name(), "wds");
  EXPECT_EQ(dump_json(file.schema()), dump_json(small_schema()));
  EXPECT_EQ(file.samples(), 3u);
  ASSERT_EQ(file.shard_count(), 3u);
  EXPECT_EQ(file.shard(0).name, "shard-000000.tar");
  EXPECT_EQ(file.shard(0).sha256, sha256(as_bytes("one")));
  EXPECT_EQ(file.shard(1).samples, 0u);
  EXPECT_EQ(file.shard(1).pin, "etag-2");
  EXPECT_EQ(file.shard(2).first_sample, 2u);
  EXPECT_EQ(file.shard(2).bytes, 2048u);
  const auto extents = file.extents(0);
  ASSERT_TRUE(extents.is_ok()) << extents.status().to_string();
  ASSERT_EQ(extents->size(), 2u);
  EXPECT_EQ((*extents)[1], (ByteRange{1024, 2048}));
  EXPECT_TRUE(file.extents(1)->empty());
  EXPECT_EQ(file.extents(3).status().code(), Code::kInvalidArgument);
}

TEST(Index, HasTheGoldenBytes) {
  std::ifstream in(std::string(HEADRACE_GOLDEN_DIR) + "/index/three-shards.hex");
  std::string golden;
  for (std::string line; std::getline(in, line);) golden += line;
  EXPECT_EQ(to_hex(as_bytes(*small_index())), golden);
}

TEST(Index, RefusesToBuildWhatItWouldNotRead) {
  IndexBuilder builder("wds", small_schema());
  EXPECT_EQ(builder.finish().status().code(), Code::kInvalidArgument);
  const auto code = [&](std::string_view name, std::vector<ByteRange> extents) {
    return builder.add_shard({name, "", 100, 0, 0, {}}, extents).code();
  };
  EXPECT_EQ(code("../a", {}), Code::kInvalidArgument);
  EXPECT_EQ(code("a", {{0, 101}}), Code::kInvalidArgument);
  EXPECT_EQ(code("a", {{0, 50}, {49, 2}}), Code::kInvalidArgument);
  EXPECT_EQ(code("a", {{0, 0}}), Code::kInvalidArgument);
  EXPECT_EQ(code("a", {{101, ~std::uint64_t{0}}}), Code::kInvalidArgument);
  EXPECT_EQ(code("a", {{0, 100}}), Code::kOk);
  EXPECT_EQ(code("a", {}), Code::kInvalidArgument);
}

TEST(HostileIndex, NoticesEveryChangedByte) {
  const std::string good = *small_index();
  const std::size_t extents = header_of(good).table[3].offset;
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x20);
    const auto index = parse(bad);
    if (at < extents) {
      EXPECT_FALSE(index.is_ok()) << at;
      continue;
    }
    // A damaged extent is noticed when its shard is used.
    ASSERT_TRUE(index.is_ok()) << at << index.status().to_string();
    const std::uint32_t shard = at < extents + 32 ? 0 : 2;
    EXPECT_EQ((*index)->extents(shard).status().code(), Code::kCorrupt) << at;
  }
}

TEST(HostileIndex, RefusesEveryTruncationAndMore) {
  const std::string good = *small_index();
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(parse(good.substr(0, size)).is_ok()) << size;
  }
  EXPECT_FALSE(parse(good + std::string(8, '\0')).is_ok());
}

TEST(HostileIndex, RefusesStructuresThatLie) {
  const std::string good = *small_index();
  ASSERT_TRUE(parse(repaired(good)).is_ok());
  IndexHeader lie = header_of(good);
  lie.version = 2;
  EXPECT_EQ(parse(with_header(good, lie)).status().code(), Code::kUnimplemented);

  std::vector<IndexHeader> lies;
  const auto add = [&](auto change) {
    IndexHeader header = header_of(good);
    change(header);
    lies.push_back(header);
  };
  add([](IndexHeader& h) { h.shards = 1'000'000'000; });
  add([](IndexHeader& h) { h.samples = 1'000'000'000; });
  add([](IndexHeader& h) { h.samples = 2; });
  add([](IndexHeader& h) { h.samples = ~std::uint64_t{0}; });
  add([](IndexHeader& h) { h.sections = 3; });
  add([](IndexHeader& h) { h.table[1].reserved = 1; });
  add([](IndexHeader& h) { h.table[2].kind = 4; });
  for (const IndexHeader& header : lies) {
    EXPECT_EQ(parse(with_header(good, header)).status().code(), Code::kCorrupt);
  }
  // These cannot have right checksums: they leave the file.
  IndexHeader far = header_of(good);
  far.table[3].length = ~std::uint64_t{0} - 4;
  far.checksum = index_header_checksum(far);
  std::string file = good;
  std::memcpy(file.data(), &far, sizeof far);
  EXPECT_EQ(parse(file).status().code(), Code::kCorrupt);
}

TEST(HostileIndex, RefusesRecordsThatLie) {
  const std::string good = *small_index();
  const auto code = [&](auto change) {
    return parse(with_record(good, 1, change)).status().code();
  };
  EXPECT_EQ(code([](IndexRecord&) {}), Code::kOk);
  EXPECT_EQ(code([](IndexRecord& r) { r.name_offset = 0xffffffff; }), Code::kCorrupt);
  EXPECT_EQ(code([](IndexRecord& r) { r.name_length = 0xffffffff; }), Code::kCorrupt);
  EXPECT_EQ(code([](IndexRecord& r) { r.name_length = 0; }), Code::kCorrupt);
  EXPECT_EQ(code([](IndexRecord& r) { r.pin_length = 0xffffffff; }), Code::kCorrupt);
  EXPECT_EQ(code([](IndexRecord& r) { r.samples = 1; }), Code::kCorrupt);
  EXPECT_EQ(code([](IndexRecord& r) { r.samples = ~std::uint64_t{0}; }), Code::kCorrupt);
  EXPECT_EQ(code([](IndexRecord& r) { r.first_sample = 1; }), Code::kCorrupt);
  // The name of shard 0.
  EXPECT_EQ(code([](IndexRecord& r) { r.name_offset = 0, r.name_length = 16; }), Code::kCorrupt);
  const auto shrunk = parse(with_record(good, 0, [](IndexRecord& r) { r.bytes = 2048; }));
  ASSERT_TRUE(shrunk.is_ok());
  EXPECT_EQ((*shrunk)->extents(0).status().code(), Code::kCorrupt);
}

TEST(HostileIndex, RefusesDescriptionsThatLie) {
  const std::string good = *small_index();
  const std::size_t at = good.find("\"wds\"");
  for (const std::string_view by : {"12345", "\"wd\xff\"", "[[[[["}) {
    std::string bad = good;
    bad.replace(at, 5, by);
    EXPECT_EQ(parse(repaired(bad)).status().code(), Code::kCorrupt) << by;
  }
}

}  // namespace
}  // namespace headrace::trust
