// Archives that lie: each is an error that names archive, offset and member, at little cost.
#include <gtest/gtest.h>

#include "headrace/format/test_tar.h"

namespace headrace::format {
namespace {

struct Lie {
  std::string archive;
  Code code;
  const char* expected;  // part of the message
};

void expect_lies(const std::vector<Lie>& lies) {
  for (const Lie& lie : lies) {
    for (const std::size_t step : {std::size_t{1} << 20, std::size_t{100}}) {
      const Status status = scan(lie.archive, step).status();
      EXPECT_EQ(status.code(), lie.code) << lie.expected << ": " << status.to_string();
      EXPECT_NE(status.message().find(lie.expected), std::string::npos)
          << lie.expected << ": " << status.to_string();
      EXPECT_TRUE(status.message().starts_with("a.tar at byte ")) << status.to_string();
    }
  }
}

TestTar good() { return std::move(TestTar().file("1.jpg", "x")); }

TEST(HostileTar, NamesPlaceAndMemberOfForeignEntries) {
  expect_lies({
      {good().member("2.jpg", '2', TestTar::octal(0, 11), "").bytes(), Code::kCorrupt,
       "a.tar at byte 1024, member '2.jpg': it is a link"},
      {good().member("2.jpg", '1', TestTar::octal(0, 11), "").bytes(), Code::kCorrupt, "link"},
      {good().member("2.jpg", '3', TestTar::octal(0, 11), "").bytes(), Code::kCorrupt, "device"},
      {good().member("2.jpg", '6', TestTar::octal(0, 11), "").bytes(), Code::kCorrupt, "pipe"},
      {good().member("2.jpg", 'S', TestTar::octal(0, 11), "").bytes(), Code::kUnimplemented,
       "sparse"},
      {good().member("2.jpg", 'Q', TestTar::octal(0, 11), "").bytes(), Code::kUnimplemented,
       "type 81"},
      {good().pax({{"GNU.sparse.major", "1"}}).file("2.jpg", "").bytes(), Code::kUnimplemented,
       "sparse"},
  });
}

TEST(HostileTar, RefusesNamesThatLeaveTheRoot) {
  using namespace std::string_literals;
  expect_lies({
      {good().file("/etc/passwd.txt", "").bytes(), Code::kCorrupt, "absolute"},
      {good().file("a/../../b.txt", "").bytes(), Code::kCorrupt, "'..'"},
      {good().file("b.txt", "", "..").bytes(), Code::kCorrupt, "'..'"},
      {good().pax({{"path", "../b.txt"}}).file("b.txt", "").bytes(), Code::kCorrupt, "'..'"},
      {good().pax({{"path", "b\0c.txt"s}}).file("b.txt", "").bytes(), Code::kCorrupt, "NUL"},
      {good().gnu_name("/b.txt").file("b.txt", "").bytes(), Code::kCorrupt, "absolute"},
      {good().file("\xff.txt", "").bytes(), Code::kCorrupt, "UTF-8"},
      {good().file("", "").bytes(), Code::kCorrupt, "no name"},
      {good().pax({{"path", std::string(5000, 'x')}}).file("b", "").bytes(), Code::kCorrupt,
       "longer than 4096"},
  });
}

TEST(HostileTar, RefusesDamagedHeaders) {
  std::string flipped = good().bytes();
  flipped[5] = 'Q';
  std::string negative(12, '\xff');
  std::string huge("\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12);
  std::string near_end("\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 12);
  expect_lies({
      {flipped, Code::kCorrupt, "checksum"},
      {"\x1f\x8b" + std::string(1022, 'z'), Code::kCorrupt, "gunzip"},
      {good().member("2.jpg", '0', "0000000009x", "").bytes(), Code::kCorrupt, "octal"},
      {good().member("2.jpg", '0', negative, "").bytes(), Code::kCorrupt, "number"},
      {good().member("2.jpg", '0', huge, "").bytes(), Code::kCorrupt, "number"},
      {good().member("2.jpg", '0', near_end, "").bytes(), Code::kCorrupt, "64 bits"},
      {good().raw(std::string(512, 'z')).bytes(), Code::kCorrupt, "at byte 1024"},
  });
}

TEST(HostileTar, BoundsExtensionHeaders) {
  expect_lies({
      {good().member("x", 'x', TestTar::octal(2 << 20, 11), "").bytes(), Code::kCorrupt, "1 MiB"},
      {good().member("x", 'L', TestTar::octal(0777777777, 11), "").bytes(), Code::kCorrupt,
       "1 MiB"},
      {good().pax({{"path", "a.txt"}}).bytes(), Code::kCorrupt, "no member"},
      {good().pax({{"size", "-1"}}).file("a.txt", "").bytes(), Code::kCorrupt, "bad size"},
      {good().pax({{"size", "99999999999999999999"}}).file("a.txt", "").bytes(), Code::kCorrupt,
       "bad size"},
      {good().pax({{"path", "a.txt"}}, 'g').file("a.txt", "").bytes(), Code::kUnimplemented,
       "global"},
      {good().member("x", 'x', TestTar::octal(9, 11), "99 a=b\n\0\0").bytes(), Code::kCorrupt,
       "malformed"},
      {good().member("x", 'x', TestTar::octal(7, 11), "6 a=bb\n").bytes(), Code::kCorrupt,
       "malformed"},
      {good().member("x", 'x', TestTar::octal(6, 11), "6 abc\n").bytes(), Code::kCorrupt,
       "without '='"},
  });
  // A comment for all members harms nobody.
  EXPECT_TRUE(scan(good().pax({{"comment", "hi"}}, 'g').file("2.jpg", "").bytes()).is_ok());
}

TEST(HostileTar, RefusesAFieldThatComesTwice) {
  expect_lies({
      {good().file("1.JPG", "y").bytes(), Code::kInvalidArgument, "the field 'jpg' twice"},
  });
  TestTar many;
  for (int i = 0; i < 1025; ++i) many.file("1." + std::to_string(i), "");
  expect_lies({{many.bytes(), Code::kInvalidArgument, "more than 1024 fields"}});
}

TEST(HostileTar, NoticesTruncationAtEveryByte) {
  const std::string archive = good().pax({{"path", "2.jpg"}}).file("x", "two").open_bytes();
  for (std::size_t size = 0; size <= archive.size(); ++size) {
    const Status status = scan(archive.substr(0, size)).status();
    ASSERT_EQ(status.code(), Code::kCorrupt) << size;
    ASSERT_NE(status.message().find("at byte " + std::to_string(size)), std::string::npos)
        << status.to_string();
    ASSERT_NE(status.message().find("truncated"), std::string::npos);
  }
  EXPECT_TRUE(scan(archive + std::string(512, '\0')).is_ok());
}

TEST(HostileTar, RefusesArchivesPutTogetherWithCat) {
  const Status status = scan(good().bytes() + good().bytes()).status();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("tar --concatenate"), std::string::npos);
}

TEST(HostileTar, KeepsItsMessagesPrintable) {
  const Status status = scan(good().file(std::string("/\x1b[2J") + ".txt", "").bytes()).status();
  EXPECT_EQ(status.message().find('\x1b'), std::string::npos);
}

TEST(HostileTarTables, RefusesExtentsWhereNoSampleCanBe) {
  Schema schema = read_tars({good().bytes()})->schema();
  const auto code = [&](std::vector<ByteRange> extents, std::uint64_t samples) {
    TarTables tables;
    tables.schema = schema;
    tables.shards = {{"a.tar", 4096, samples, {}}};
    tables.extents = [&](std::uint32_t) -> Result<std::span<const ByteRange>> {
      return std::span<const ByteRange>(extents);
    };
    const auto reader = std::move(make_tar_reader(std::move(tables))).value();
    return reader->make_locator(0, {}).status().code();
  };
  constexpr std::uint64_t kHuge = ~std::uint64_t{0} - 511;
  EXPECT_EQ(code({{0, 1024}, {1024, 512}}, 2), Code::kOk);
  EXPECT_EQ(code({}, 0), Code::kOk);
  EXPECT_EQ(code({{0, 1024}}, 2), Code::kCorrupt);
  EXPECT_EQ(code({{0, 1000}}, 1), Code::kCorrupt);
  EXPECT_EQ(code({{100, 512}}, 1), Code::kCorrupt);
  EXPECT_EQ(code({{0, 0}}, 1), Code::kCorrupt);
  EXPECT_EQ(code({{0, 1024}, {512, 512}}, 2), Code::kCorrupt);
  EXPECT_EQ(code({{0, 4608}}, 1), Code::kCorrupt);
  EXPECT_EQ(code({{512, kHuge}}, 1), Code::kCorrupt);
  EXPECT_EQ(code({{kHuge, 512}}, 1), Code::kCorrupt);
  schema.fields.erase(schema.fields.begin());
  TarTables tables;
  tables.schema = schema;
  EXPECT_EQ(make_tar_reader(tables).status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace headrace::format
