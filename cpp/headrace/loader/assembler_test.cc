#include "headrace/loader/assembler.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

namespace headrace::loader {
namespace {

using format::DType;
using format::FieldKind;
using format::FieldValue;

std::string read_golden(const std::string& name) {
  std::ifstream in(std::string(HEADRACE_GOLDEN_DIR) + "/codec/" + name, std::ios::binary);
  HR_CHECK(in.good(), "missing golden file " + name);
  return {std::istreambuf_iterator<char>(in), {}};
}

format::Field field(std::string name, FieldKind kind, std::optional<DType> dtype = std::nullopt,
                    std::optional<std::vector<std::uint64_t>> shape = std::nullopt) {
  format::Field out;
  out.name = std::move(name);
  out.type.kind = kind;
  out.type.dtype = dtype;
  out.type.shape = std::move(shape);
  return out;
}

FieldValue text(std::string_view bytes) {
  FieldValue out;
  out.is_null = false;
  out.bytes = as_bytes(bytes);
  return out;
}

template <std::size_t N>
FieldValue array(const std::int16_t (&numbers)[N], std::vector<std::uint64_t> shape) {
  FieldValue out;
  out.is_null = false;
  out.bytes = {reinterpret_cast<const std::byte*>(numbers), sizeof numbers};
  out.dtype = DType::kI16;
  out.dimensions = static_cast<std::uint8_t>(shape.size());
  std::copy(shape.begin(), shape.end(), out.shape.begin());
  return out;
}

std::int64_t int64_at(MutableBytes bytes, std::size_t i) {
  return load_le<std::int64_t>(bytes.data() + 8 * i);
}

// Lays out, binds and fills all rows.
Result<Batch> assemble(const Assembler& assembler, const std::vector<FieldValue>& values) {
  Batch batch;
  std::optional<std::uint64_t> bad_row;
  const std::uint64_t rows = values.size() / assembler.fields();
  HR_ASSIGN(const std::uint64_t bytes, assembler.layout(values, rows, batch, bad_row));
  assembler.bind(values, heap_lease(bytes), batch);
  for (std::uint64_t row = 0; row < rows; ++row) {
    HR_TRY(assembler.fill(row, {&values[row * assembler.fields()], assembler.fields()}, 0,
                          100 + row, batch));
  }
  return batch;
}

TEST(Assembler, PacksTextEndToEndWithOffsets) {
  format::Schema schema{{field("t", FieldKind::kStr)}};
  const Assembler assembler = *Assembler::make(schema, {}, {}, 0, false);
  const Batch batch = *assemble(assembler, {text("one"), text(""), text("three")});
  const BatchColumn& column = batch.columns[0];
  EXPECT_TRUE(column.is_ragged);
  EXPECT_EQ(as_text(column.values), "onethree");
  EXPECT_EQ(int64_at(column.offsets, 1), 3);
  EXPECT_EQ(int64_at(column.offsets, 2), 3);
  EXPECT_EQ(int64_at(column.offsets, 3), 8);
  EXPECT_EQ(int64_at(batch.index, 2), 102);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(column.values.data()) % 16, 0U);
}

TEST(Assembler, NullsAreMarkedAndTakeNoSpace) {
  format::Schema schema{
      {field("t", FieldKind::kBytes), field("n", FieldKind::kScalar, DType::kI16)}};
  for (auto& f : schema.fields) f.type.nullable = true;
  const Assembler assembler = *Assembler::make(schema, {}, {}, 0, false);
  const std::int16_t seven[] = {7};
  const Batch batch =
      *assemble(assembler, {text("x"), FieldValue(), FieldValue(), array(seven, {})});
  EXPECT_EQ(as_text(batch.columns[0].values), "x");
  EXPECT_EQ(batch.columns[0].valid[0], std::byte{1});
  EXPECT_EQ(batch.columns[0].valid[1], std::byte{0});
  EXPECT_EQ(load_le<std::int16_t>(batch.columns[1].values.data()), 0);
  EXPECT_EQ(load_le<std::int16_t>(batch.columns[1].values.data() + 2), 7);
  EXPECT_EQ(batch.columns[1].valid[0], std::byte{0});
}

TEST(Assembler, FixedArraysAreDenseAndRaggedOnesKeepTheirShapes) {
  format::Schema schema{
      {field("fixed", FieldKind::kArray, DType::kI16, std::vector<std::uint64_t>{2, 2}),
       field("ragged", FieldKind::kArray)}};
  const Assembler assembler = *Assembler::make(schema, {}, {}, 0, false);
  const std::int16_t four[] = {1, 2, 3, 4};
  const std::int16_t six[] = {5, 6, 7, 8, 9, 10};
  const Batch batch = *assemble(assembler, {array(four, {2, 2}), array(six, {2, 3}),
                                            array(four, {2, 2}), array(four, {1, 4})});
  EXPECT_EQ(batch.columns[0].shape, (std::vector<std::uint64_t>{2, 2}));
  EXPECT_EQ(batch.columns[0].values.size(), 16U);
  const BatchColumn& ragged = batch.columns[1];
  EXPECT_EQ(ragged.dtype, DType::kI16);
  EXPECT_EQ(ragged.dimensions, 2);
  EXPECT_EQ(int64_at(ragged.offsets, 2), 10);
  EXPECT_EQ(int64_at(ragged.shapes, 0), 2);
  EXPECT_EQ(int64_at(ragged.shapes, 1), 3);
  EXPECT_EQ(int64_at(ragged.shapes, 3), 4);
}

TEST(Assembler, RefusesArraysOfDifferentDimensionsInOneBatch) {
  format::Schema schema{{field("a", FieldKind::kArray)}};
  const Assembler assembler = *Assembler::make(schema, {}, {}, 0, false);
  const std::int16_t four[] = {1, 2, 3, 4};
  const auto batch = assemble(assembler, {array(four, {4}), array(four, {2, 2})});
  EXPECT_EQ(batch.status().code(), Code::kInvalidArgument);
  EXPECT_NE(batch.status().message().find("\"a\""), std::string::npos);
}

TEST(Assembler, DecodesPicturesIntoTheirRows) {
  format::Schema schema{{field("image", FieldKind::kMedia)}};
  const std::string jpeg = read_golden("420.jpg");
  codec::ImageSpec spec;
  spec.height = 32;
  spec.width = 48;
  const Assembler assembler = *Assembler::make(schema, {}, {{"image", spec}}, 9, false);
  const Batch batch = *assemble(assembler, {text(jpeg), text(jpeg)});
  EXPECT_EQ(batch.columns[0].shape, (std::vector<std::uint64_t>{32, 48, 3}));
  std::vector<std::byte> alone(spec.bytes());
  codec::ImageDecoder decoder;
  ASSERT_TRUE(decoder.decode(as_bytes(jpeg), spec, {9, 0, 101}, alone).is_ok());
  EXPECT_EQ(std::memcmp(batch.columns[0].values.data() + spec.bytes(), alone.data(), alone.size()),
            0);
  EXPECT_FALSE(assemble(assembler, {text("no picture")}).is_ok());
}

TEST(Assembler, PicturesOfTheirOwnSizeAreRagged) {
  format::Schema schema{{field("image", FieldKind::kMedia)}};
  const std::string jpeg = read_golden("420.jpg");
  codec::ImageSpec spec;
  spec.crop = codec::Crop::kNone;
  spec.height = spec.width = 0;
  const Assembler assembler = *Assembler::make(schema, {}, {{"image", spec}}, 9, false);
  const Batch batch = *assemble(assembler, {text(jpeg)});
  const codec::ImageInfo info = *codec::probe_image(as_bytes(jpeg));
  EXPECT_EQ(int64_at(batch.columns[0].shapes, 0), info.height);
  EXPECT_EQ(int64_at(batch.columns[0].shapes, 1), info.width);
  EXPECT_EQ(batch.columns[0].values.size(), std::size_t{info.height} * info.width * 3);
}

}  // namespace
}  // namespace headrace::loader
