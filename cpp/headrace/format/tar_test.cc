#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "headrace/format/tar_reader.h"
#include "headrace/format/tar_scanner.h"
#include "headrace/format/test_data.h"
#include "headrace/format/test_tar.h"

namespace headrace::format {
namespace {

std::string listing(const std::vector<TarSample>& samples) {
  std::string out;
  for (const TarSample& sample : samples) {
    out += sample.key + "[" + std::to_string(sample.begin) + "," + std::to_string(sample.end) + ")";
    for (const TarField& field : sample.fields) {
      out += " " + field.extension + "@" + std::to_string(field.offset) + "+" +
             std::to_string(field.size);
    }
    out += "\n";
  }
  return out;
}

TEST(WdsName, IsCutAtTheFirstDotOfTheBaseName) {
  const struct {
    const char* name;
    const char* key;
    const char* extension;
  } cases[] = {
      {"a/b/img.seg.PNG", "a/b/img", "seg.PNG"}, {"v1.2_001.jpg", "v1", "2_001.jpg"},
      {"dir.x/a.jpg", "dir.x/a", "jpg"},         {"./a.jpg", "./a", "jpg"},
      {"a/__x__.jpg", "a/__x__", "jpg"},         {"__a.jpg", "__a", "jpg"},
  };
  for (const auto& c : cases) {
    const WdsName cut = split_wds_name(c.name);
    EXPECT_TRUE(cut.is_field) << c.name;
    EXPECT_EQ(cut.key, c.key);
    EXPECT_EQ(cut.extension, c.extension);
  }
  for (const char* skipped : {"noext", "dir.x/noext", ".hidden", "dir/.hidden", "__meta__/a.json",
                              "__meta__", "__info__", "a."}) {
    EXPECT_FALSE(split_wds_name(skipped).is_field) << skipped;
  }
}

TEST(TarScanner, GroupsMembersIntoSamples) {
  TestTar tar;
  tar.directory("a/");
  tar.file("a/1.jpg", "jpeg").file("a/1.CLS", "7");
  tar.file("README", "skipped").file("a/1.seg.png", std::string(600, 'p'));
  tar.file("__meta__/x.json", "{}");
  tar.file("a/2.jpg", "").file("a/1.jpg", "again");
  EXPECT_EQ(listing(*scan(tar.bytes())),
            "a/1[512,5120) jpg@1024+4 cls@2048+1 seg.png@4096+600\n"
            "a/2[6144,6656) jpg@6656+0\n"
            "a/1[6656,7680) jpg@7168+5\n");
}

TEST(TarScanner, GivesTheSameForPiecesOfAnySize) {
  TestTar tar;
  const std::string long_name(300, 'n');
  tar.pax({{"path", "p/" + long_name + ".jpg"}}).file("short", "1");
  tar.gnu_name("g/" + long_name + ".txt").file("short", "22");
  tar.file(std::string(90, 'd') + "/x.cls", "3", "prefix/of/it");
  tar.base256("b.bin", std::string(1000, 'b'));
  const std::string whole = listing(*scan(tar.bytes()));
  EXPECT_NE(whole.find("p/" + long_name + "[0,"), std::string::npos) << whole;
  EXPECT_NE(whole.find("prefix/of/it/" + std::string(90, 'd') + "/x["), std::string::npos);
  for (const std::size_t step : {1, 7, 511, 512, 513, 4096}) {
    EXPECT_EQ(listing(*scan(tar.bytes(), step)), whole) << step;
  }
}

TEST(WdsSchema, IsTheUnionOfExtensionsAndMarksGaps) {
  TestTar tar;
  tar.file("1.jpg", "x").file("1.cls", "7").file("1.seg.png", "p");
  tar.file("2.jpg", "x").file("2.cls", "8").file("2.bin", "b");
  WdsSchemaBuilder builder;
  const auto samples = scan(tar.bytes());
  for (const TarSample& sample : *samples) builder.add(sample);
  const auto schema = builder.finish();
  std::string text;
  for (const Field& field : schema->fields) {
    text += field.name + ":" + field.type.to_string() + " ";
  }
  EXPECT_EQ(text, "__key__:str bin:bytes? cls:str jpg:jpeg seg.png:png? ");
}

TEST(TarReader, ReadsNamesOfEveryForm) {
  TestTar tar;
  const std::string long_name(150, 'n');
  tar.pax({{"path", long_name + ".txt"}, {"mtime", "1.5"}}).file("short", "pax");
  tar.gnu_name("g" + long_name + ".txt").file("short", "gnu");
  tar.file("x.txt", "ustar", std::string(120, 'p'));
  const auto reader = read_tars({tar.bytes()});
  const auto locator = std::move(locator_of(*reader, 0, {})).value();
  const std::string file = tar.bytes();
  const std::pair<std::string, std::string> expected[] = {
      {long_name, "pax"}, {"g" + long_name, "gnu"}, {std::string(120, 'p') + "/x", "ustar"}};
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto row = read_row(*reader, *locator, as_bytes(file), i);
    ASSERT_TRUE(row.is_ok()) << row.status().to_string();
    EXPECT_EQ((*row)[0], expected[i].first);
    EXPECT_EQ((*row)[1], expected[i].second);
  }
}

TEST(TarReader, RefusesBytesThatAreNotTheSample) {
  TestTar tar;
  tar.file("1.jpg", "x").file("1.txt", "7").file("2.jpg", "y").file("2.txt", "8");
  tar.file("3.jpg", "y").file("3.txt", "8");
  const auto reader = read_tars({tar.bytes()});
  const std::string file = tar.bytes();
  std::vector<FieldValue> values(3);
  const auto code = [&](std::string_view unit) {
    return reader->view(as_bytes(unit), 0, values).code();
  };
  const std::string_view all = file;
  EXPECT_EQ(code(all.substr(0, 2048)), Code::kOk);
  EXPECT_EQ(code(all.substr(0, 1024)), Code::kCorrupt);    // a field is missing
  EXPECT_EQ(code(all.substr(0, 4096)), Code::kCorrupt);    // two samples
  EXPECT_EQ(code(all.substr(512, 1024)), Code::kCorrupt);  // no header
  EXPECT_EQ(code(all.substr(0, 700)), Code::kCorrupt);
  EXPECT_EQ(code(all.substr(0, 512)), Code::kCorrupt);
  EXPECT_EQ(code(""), Code::kCorrupt);
  EXPECT_EQ(reader->view(as_bytes(all.substr(0, 2048)), 1, values).code(), Code::kInvalidArgument);
  std::string bad_text = file.substr(0, 2048);
  bad_text[1024 + 512] = '\xff';
  EXPECT_EQ(code(bad_text), Code::kCorrupt);
}

WriterOptions image_columns() {
  WriterOptions options;
  options.columns = {{"jpg", "jpeg"}, {"cls", "int"}, {"json", "json"}};
  return options;
}

TEST(WdsWriter, WritesTheGoldenBytes) {
  auto builder = std::move(make_dataset_builder("wds", image_columns())).value();
  std::vector<FinishedFile> files;
  const std::int64_t cls = -3;
  const FieldValue values[] = {int_value(cls), text_value("\xff\xd8"), text_value("{\"a\": 1}")};
  ASSERT_TRUE(builder->add("", values, files).is_ok());
  const FieldValue sparse[] = {int_value(cls), FieldValue{}, text_value("[]")};
  ASSERT_TRUE(builder->add("dir.x/\xc3\xa9", sparse, files).is_ok());
  ASSERT_TRUE(builder->finish(files).is_ok());
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].name, "shard-000000.tar");
  std::ifstream in(std::string(HEADRACE_GOLDEN_DIR) + "/wds/two-samples.sha256");
  std::string golden;
  in >> golden;
  EXPECT_EQ(to_hex(sha256(as_bytes(*files[0].bytes))), golden);
}

TEST(WdsWriter, RefusesWhatReadersWouldTakeForSomethingElse) {
  auto builder = std::move(make_dataset_builder("wds", image_columns())).value();
  std::vector<FinishedFile> files;
  const std::int64_t cls = 1;
  const FieldValue values[] = {int_value(cls), text_value("x"), text_value("{}")};
  for (const char* key :
       {"v1.2", "a/b.c", "/abs", "a/../b", "__x__/a", ".hidden", "a//b", "a\\b", "\xff"}) {
    EXPECT_EQ(builder->add(key, values, files).code(), Code::kInvalidArgument) << key;
  }
  EXPECT_TRUE(builder->add("a.b/c", values, files).is_ok());
  EXPECT_EQ(builder->add("a.b/c", values, files).code(), Code::kInvalidArgument);
  const FieldValue nothing[3];
  EXPECT_EQ(builder->add("d", nothing, files).code(), Code::kInvalidArgument);
  const FieldValue bad[] = {int_value(cls), text_value("x"), text_value("{")};
  EXPECT_EQ(builder->add("d", bad, files).code(), Code::kInvalidArgument);
  EXPECT_EQ(builder->add("d", std::span(values, 2), files).code(), Code::kInvalidArgument);
  EXPECT_TRUE(files.empty());
}

TEST(WdsWriter, RefusesColumnsByName) {
  const auto code = [](std::vector<Column> columns) {
    WriterOptions options;
    options.columns = std::move(columns);
    return make_dataset_builder("wds", std::move(options)).status().code();
  };
  EXPECT_EQ(code({{"jpg", "jpeg"}, {"seg.png", "png"}, {"txt", "str"}, {"x", "str"}}), Code::kOk);
  EXPECT_EQ(code({{"jpg", "bytes"}}), Code::kOk);
  EXPECT_EQ(code({{"jpg", "png"}}), Code::kInvalidArgument);
  EXPECT_EQ(code({{"jpg", "str"}}), Code::kInvalidArgument);
  EXPECT_EQ(code({{"json", "str"}}), Code::kInvalidArgument);
  EXPECT_EQ(code({{"JPG", "jpeg"}}), Code::kInvalidArgument);
  EXPECT_EQ(code({{".jpg", "jpeg"}}), Code::kInvalidArgument);
  EXPECT_EQ(code({{"a/b", "bytes"}}), Code::kInvalidArgument);
  EXPECT_EQ(code({{"__key__", "str"}}), Code::kInvalidArgument);
  EXPECT_EQ(code({{"a", "pkl"}}), Code::kInvalidArgument);
  EXPECT_EQ(code({{"a", "bytes"}, {"a", "bytes"}}), Code::kInvalidArgument);
  EXPECT_EQ(code({}), Code::kInvalidArgument);
}

TEST(WdsWriter, EndsShardsBeforeTheLimit) {
  WriterOptions options;
  options.columns = {{"bin", "bytes"}};
  options.size_limit = 4096;
  auto builder = std::move(make_dataset_builder("wds", options)).value();
  std::vector<FinishedFile> files;
  const std::string large(9000, 'x');
  for (int i = 0; i < 10; ++i) {
    const FieldValue values[] = {text_value(i == 0 ? large : std::string_view("small"))};
    ASSERT_TRUE(builder->add("", values, files).is_ok());
  }
  ASSERT_TRUE(builder->finish(files).is_ok());
  std::size_t samples = 0;
  for (const FinishedFile& file : files) {
    samples += scan(*file.bytes)->size();
    EXPECT_TRUE(file.name == "shard-000000.tar" || file.bytes->size() <= 4096u);
  }
  EXPECT_EQ(samples, 10u);
  EXPECT_EQ(files.size(), 4u);
}

}  // namespace
}  // namespace headrace::format
