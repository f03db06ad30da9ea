#include "headrace/format/mds_encoding.h"

#include <gtest/gtest.h>

namespace headrace::format {
namespace {

FieldValue array(DType dtype, std::vector<std::uint64_t> shape, std::string_view bytes) {
  FieldValue value;
  value.is_null = false;
  value.bytes = as_bytes(bytes);
  value.dtype = dtype;
  for (const std::uint64_t size : shape) value.shape[value.dimensions++] = size;
  return value;
}

FieldValue text(std::string_view bytes) {
  FieldValue value;
  value.is_null = false;
  value.bytes = as_bytes(bytes);
  return value;
}

std::string encoded(std::string_view encoding, const FieldValue& value) {
  std::string out;
  const Status status = mds_encode(*parse_mds_encoding(encoding), value, out);
  EXPECT_TRUE(status.is_ok()) << encoding << ": " << status.to_string();
  return out;
}

TEST(MdsEncoding, KnowsTypesAndSizes) {
  EXPECT_EQ(parse_mds_encoding("int")->size, 8u);
  EXPECT_EQ(parse_mds_encoding("float16")->size, 2u);
  EXPECT_EQ(parse_mds_encoding("ndarray:uint16:2048")->size, 4096u);
  EXPECT_EQ(parse_mds_encoding("ndarray:float32:2,3")->type.to_string(), "float32[2,3]");
  EXPECT_FALSE(parse_mds_encoding("ndarray:float32")->size.has_value());
  EXPECT_EQ(parse_mds_encoding("ndarray")->type.to_string(), "any[?]");
  EXPECT_EQ(parse_mds_encoding("str_decimal")->type.kind, FieldKind::kStr);
  EXPECT_EQ(parse_mds_encoding("png")->type.media, MediaKind::kPng);
}

TEST(MdsEncoding, RefusesPicklesAndNamesTheRemedy) {
  const Status status = parse_mds_encoding("pkl").status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("'pkl' is a Python pickle"), std::string::npos);
  EXPECT_NE(status.message().find("json, ndarray or bytes"), std::string::npos);
}

TEST(MdsEncoding, NamesWhatItDoesNotRead) {
  for (const char* name : {"pil", "list[jpeg]", "list[pil]", "jpeg_array", "jpegarray", "webp"}) {
    const Status status = parse_mds_encoding(name).status();
    EXPECT_EQ(status.code(), Code::kUnimplemented) << name;
    EXPECT_NE(status.message().find(name), std::string::npos);
  }
  for (const char* name :
       {"ndarray:bool", "ndarray:uint8:", "ndarray:uint8:0", "ndarray:uint8:-1",
        "ndarray:uint8:2,,3", "ndarray:uint8:2x", "ndarray::3",
        "ndarray:uint64:4294967295,4294967295,4294967295", "ndarray:uint8:99999999999999999999"}) {
    EXPECT_EQ(parse_mds_encoding(name).status().code(), Code::kInvalidArgument) << name;
  }
  EXPECT_EQ(parse_mds_encoding("ndarray:uint8:1,1,1,1,1,1,1,1,1").status().code(),
            Code::kUnimplemented);
}

TEST(MdsEncoding, WritesArraysAsMosaicDoes) {
  using namespace std::string_literals;
  const std::string numbers = "\x01\x00\x02\x00\x03\x00"s;
  const FieldValue value = array(DType::kU16, {3}, numbers);
  EXPECT_EQ(encoded("ndarray", value), "\x10\x04\x03"s + numbers);
  EXPECT_EQ(encoded("ndarray:uint16", value), "\x04\x03"s + numbers);
  EXPECT_EQ(encoded("ndarray:uint16:3", value), numbers);
  const std::string large(300, 'x');
  EXPECT_EQ(encoded("ndarray:uint8", array(DType::kU8, {300, 1}, large)),
            "\x09\x2c\x01\x01\x00"s + large);
  const std::string larger(70000, 'x');
  EXPECT_EQ(encoded("ndarray:int8", array(DType::kI8, {70000}, larger)),
            "\x06\x70\x11\x01\x00"s + larger);
}

TEST(MdsEncoding, ReadsBackEveryArrayForm) {
  const std::string numbers(24, 'n');
  for (const char* name : {"ndarray", "ndarray:float32", "ndarray:float32:2,3"}) {
    const FieldValue value = array(DType::kF32, {2, 3}, numbers);
    const std::string bytes = encoded(name, value);
    FieldValue back;
    ASSERT_TRUE(mds_decode(*parse_mds_encoding(name), as_bytes(bytes), back).is_ok()) << name;
    EXPECT_EQ(as_text(back.bytes), numbers);
    EXPECT_EQ(back.dtype, DType::kF32);
    ASSERT_EQ(back.dimensions, 2);
    EXPECT_EQ(back.shape[0], 2u);
    EXPECT_EQ(back.shape[1], 3u);
  }
}

TEST(MdsEncoding, RefusesValuesOfAnotherType) {
  std::string out;
  const std::string eight(8, '\0');
  const auto code = [&](std::string_view encoding, const FieldValue& value) {
    return mds_encode(*parse_mds_encoding(encoding), value, out).code();
  };
  EXPECT_EQ(code("int", array(DType::kF64, {}, eight)), Code::kInvalidArgument);
  EXPECT_EQ(code("int", array(DType::kI64, {1}, eight)), Code::kInvalidArgument);
  EXPECT_EQ(code("int", FieldValue{}), Code::kInvalidArgument);
  EXPECT_EQ(code("str", text("\xff")), Code::kInvalidArgument);
  EXPECT_EQ(code("json", text("{")), Code::kInvalidArgument);
  EXPECT_EQ(code("ndarray", array(DType::kU8, {}, "x")), Code::kInvalidArgument);
  EXPECT_EQ(code("ndarray", array(DType::kU8, {0}, "")), Code::kInvalidArgument);
  EXPECT_EQ(code("ndarray", array(DType::kU8, {9}, eight)), Code::kInvalidArgument);
  EXPECT_EQ(code("ndarray:uint8:4,2", array(DType::kU8, {2, 4}, eight)), Code::kInvalidArgument);
  EXPECT_TRUE(out.empty());
}

TEST(MdsEncoding, RefusesArraysThatLie) {
  using namespace std::string_view_literals;
  const MdsColumn typed = *parse_mds_encoding("ndarray");
  FieldValue value;
  for (const std::string_view bytes :
       {""sv, "\x10"sv, "\x63\x04\x01x"sv, "\x08\x00x"sv, "\x08\x04"sv, "\x08\x04\x02x"sv,
        "\x08\x04\x00"sv, "\x10\x04\x01x"sv, "\x08\x07\xff\xff\xff\xff\xff\xff\xff\xffx"sv,
        "\x40\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffx"sv}) {
    EXPECT_EQ(mds_decode(typed, as_bytes(bytes), value).code(), Code::kCorrupt)
        << to_hex(as_bytes(bytes));
  }
  EXPECT_EQ(
      mds_decode(typed, as_bytes("\x08\x24\x01\x01\x01\x01\x01\x01\x01\x01\x01x"), value).code(),
      Code::kUnimplemented);
}

}  // namespace
}  // namespace headrace::format
