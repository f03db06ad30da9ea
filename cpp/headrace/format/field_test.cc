#include "headrace/format/field.h"

#include <gtest/gtest.h>

#include "headrace/format/schema_json.h"

namespace headrace::format {
namespace {

FieldType of(FieldKind kind) {
  FieldType type;
  type.kind = kind;
  return type;
}

FieldType numbers(FieldKind kind, DType dtype) {
  FieldType type = of(kind);
  type.dtype = dtype;
  return type;
}

FieldType picture(MediaKind media) {
  FieldType type = of(FieldKind::kMedia);
  type.media = media;
  return type;
}

Schema every_kind() {
  FieldType maybe = of(FieldKind::kStr);
  maybe.nullable = true;
  FieldType fixed = numbers(FieldKind::kArray, DType::kU16);
  fixed.shape = std::vector<std::uint64_t>{2, 3};
  FieldType list = of(FieldKind::kList);
  list.item = std::make_shared<const FieldType>(picture(MediaKind::kJpeg));
  Schema schema;
  schema.fields = {{"a", numbers(FieldKind::kScalar, DType::kI64), "int"},
                   {"b", of(FieldKind::kBytes), "bytes"},
                   {"c", maybe, "str"},
                   {"d", of(FieldKind::kJson), "json"},
                   {"e", fixed, "ndarray:uint16:2,3"},
                   {"f", numbers(FieldKind::kArray, DType::kF32), ""},
                   {"g", picture(MediaKind::kPng), "png"},
                   {"h", list, "list[jpeg]"}};
  return schema;
}

TEST(FieldType, IsWrittenForPeople) {
  std::string all;
  for (const Field& field : every_kind().fields) all += field.type.to_string() + " ";
  EXPECT_EQ(all, "int64 bytes str? json uint16[2,3] float32[?] png list[jpeg] ");
}

TEST(DType, NamesAndSizesAreNumpys) {
  for (const char* name : {"uint8", "int8", "uint16", "int16", "float16", "uint32", "int32",
                           "float32", "uint64", "int64", "float64"}) {
    const auto dtype = dtype_from_name(name);
    ASSERT_TRUE(dtype.has_value()) << name;
    EXPECT_EQ(dtype_name(*dtype), name);
    EXPECT_TRUE(std::string(name).ends_with(std::to_string(8 * dtype_size(*dtype)))) << name;
  }
  EXPECT_FALSE(dtype_from_name("bool").has_value());
}

TEST(SchemaJson, ReadsBackWhatItWrote) {
  const Schema schema = every_kind();
  const auto read = schema_from_json(*parse_json(dump_json(schema_to_json(schema))));
  ASSERT_TRUE(read.is_ok()) << read.status().to_string();
  ASSERT_EQ(read->fields.size(), schema.fields.size());
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    EXPECT_EQ(read->fields[i].name, schema.fields[i].name);
    EXPECT_EQ(read->fields[i].encoding, schema.fields[i].encoding);
    EXPECT_EQ(read->fields[i].type, schema.fields[i].type) << schema.fields[i].name;
  }
}

TEST(SchemaJson, RefusesWhatNoSchemaSays) {
  const auto field = [](const std::string& type) {
    return "{\"fields\": [{\"name\": \"a\", \"encoding\": \"\", \"type\": " + type + "}]}";
  };
  for (const std::string& text :
       {std::string("{}"), std::string("{\"fields\": 1}"), std::string("{\"fields\": [1]}"),
        field("{}"), field("{\"kind\": \"pickle\"}"), field("{\"kind\": \"scalar\"}"),
        field("{\"kind\": \"scalar\", \"dtype\": \"bool\"}"),
        field("{\"kind\": \"media\", \"media\": \"gif\"}"), field("{\"kind\": \"list\"}"),
        field("{\"kind\": \"list\", \"item\": {\"kind\": \"list\"}}"),
        field("{\"kind\": \"array\", \"shape\": []}"),
        field("{\"kind\": \"array\", \"shape\": [0]}"),
        field("{\"kind\": \"array\", \"shape\": [-1]}"),
        field("{\"kind\": \"array\", \"shape\": [4294967296, 4294967296]}"),
        field("{\"kind\": \"str\", \"nullable\": 1}")}) {
    EXPECT_EQ(schema_from_json(*parse_json(text)).status().code(), Code::kCorrupt) << text;
  }
}

}  // namespace
}  // namespace headrace::format
