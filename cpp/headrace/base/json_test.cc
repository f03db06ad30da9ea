#include "headrace/base/json.h"

#include <gtest/gtest.h>

#include "headrace/base/key.h"
#include "headrace/base/utf8.h"

namespace headrace {
namespace {

TEST(Json, DumpsAsPythonDoes) {
  Json json = Json::object();
  json.set("b", Json::number(7)).set("a", Json::string("x\"\\\n\x01 \xc3\xa9 \xf0\x9f\x98\x80"));
  Json list = Json::array();
  list.push_back(Json());
  list.push_back(Json::boolean(true));
  list.push_back(Json::number_signed(-3));
  list.push_back(Json::number_double(2));
  json.set("c", std::move(list));
  EXPECT_EQ(dump_json(json),
            "{\"a\": \"x\\\"\\\\\\n\\u0001 \\u00e9 \\ud83d\\ude00\", \"b\": 7, "
            "\"c\": [null, true, -3, 2.0]}");
}

TEST(Json, ReadsBackWhatItDumped) {
  const std::string text = "{\"a\": [1, -2, 0.5, \"\\u00e9\", {}, []], \"z\": null}";
  EXPECT_EQ(dump_json(*parse_json(text)), text);
}

TEST(Json, KeepsWholeNumbersApartFromOthers) {
  const Json json = *parse_json("[18446744073709551615, 18446744073709551616, 1.0, -1, true]");
  const Json::Array& items = *json.as_array();
  EXPECT_EQ(items[0].as_u64(), 18446744073709551615u);
  EXPECT_FALSE(items[0].as_i64().has_value());
  EXPECT_FALSE(items[1].as_u64().has_value());
  EXPECT_FALSE(items[2].as_u64().has_value());
  EXPECT_EQ(items[3].as_i64(), -1);
  EXPECT_FALSE(items[3].as_u64().has_value());
  EXPECT_FALSE(items[4].as_u64().has_value());
}

TEST(Json, RefusesWhatIsNotStrict) {
  for (const std::string_view text :
       {"", "{", "[1,]", "NaN", "[Infinity]", "{\"a\":1,\"a\":2}", "1 2", "{'a':1}", "\"\xff\"",
        "[1e999]", "\"\\ud800\"", "nul"}) {
    const auto parsed = parse_json(text);
    EXPECT_EQ(parsed.status().code(), Code::kCorrupt) << text;
  }
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += "\"k" + std::to_string(i) + "\":1,";
  EXPECT_TRUE(parse_json(many + "\"x\":1}").is_ok());
  EXPECT_EQ(parse_json(many + "\"k50\":1}").status().code(), Code::kCorrupt);
}

TEST(Json, BoundsNesting) {
  const auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_TRUE(parse_json(nested(kJsonDepthMax)).is_ok());
  EXPECT_EQ(parse_json(nested(kJsonDepthMax + 1)).status().code(), Code::kCorrupt);
  EXPECT_EQ(parse_json(std::string(1 << 20, '[')).status().code(), Code::kCorrupt);
}

TEST(Key, StaysInsideTheRoot) {
  for (const std::string_view good : {"a", "a/b.c", "shard.00000.mds", "..a/b..", "a b/\xc3\xa9"}) {
    EXPECT_TRUE(check_key(good).is_ok()) << good;
  }
  using namespace std::string_view_literals;
  for (const std::string_view bad :
       {""sv, "/a"sv, "a/"sv, "a//b"sv, "."sv, ".."sv, "a/../b"sv, "./a"sv, "a\\b"sv, "a\0b"sv}) {
    EXPECT_EQ(check_key(bad).code(), Code::kInvalidArgument) << bad;
  }
  EXPECT_FALSE(check_key(std::string(kKeyBytesMax + 1, 'a')).is_ok());
}

TEST(Utf8, KnowsWellFormedText) {
  const std::string ascii(100, 'x');
  for (const std::string& good :
       {std::string(), ascii, ascii + "\xc3\xa9" + ascii, std::string("\xed\x9f\xbf"),
        std::string("\xf4\x8f\xbf\xbf"), std::string("\xe0\xa0\x80")}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  for (const std::string_view bad :
       {"\x80", "\xc0\x80", "\xc3", "\xe0\x9f\x80", "\xed\xa0\x80", "\xf0\x8f\x80\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(bad));
    EXPECT_FALSE(is_utf8(ascii + std::string(bad)));
    EXPECT_FALSE(is_utf8(std::string(bad) + ascii));
  }
}

}  // namespace
}  // namespace headrace
