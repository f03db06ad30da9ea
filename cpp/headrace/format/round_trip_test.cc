// Whatever is written is read back: random columns, values and shard sizes.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "headrace/base/rng.h"
#include "headrace/format/mds_reader.h"
#include "headrace/format/test_data.h"
#include "headrace/format/test_tar.h"

namespace headrace::format {
namespace {

// Bytes and type of one value, owned.
struct Owned {
  FieldValue value;
  std::string bytes;
};

Owned random_value(const FieldType& type, Rng& rng, bool may_be_null) {
  Owned out;
  out.value.is_null = may_be_null && rng.below(8) == 0;
  if (out.value.is_null) return out;
  std::size_t size = rng.below(200);
  if (type.kind == FieldKind::kScalar) size = dtype_size(*type.dtype);
  if (type.kind == FieldKind::kArray) {
    out.value.dtype = type.dtype ? *type.dtype : static_cast<DType>(rng.below(11));
    const std::size_t dimensions = type.shape ? type.shape->size() : 1 + rng.below(3);
    size = dtype_size(out.value.dtype);
    for (std::size_t d = 0; d < dimensions; ++d) {
      out.value.shape[d] = type.shape ? (*type.shape)[d] : 1 + rng.below(d == 0 ? 300 : 3);
      size *= out.value.shape[d];
    }
    out.value.dimensions = static_cast<std::uint8_t>(dimensions);
  } else if (type.dtype) {
    out.value.dtype = *type.dtype;
  }
  const bool is_text = type.kind == FieldKind::kStr || type.kind == FieldKind::kJson;
  for (std::size_t i = 0; i < size; ++i) {
    out.bytes.push_back(static_cast<char>(is_text ? 'a' + rng.below(26) : rng.below(256)));
  }
  if (type.kind == FieldKind::kJson) out.bytes = "{\"k\": \"" + out.bytes + "\"}";
  return out;
}

void expect_equal(const Owned& written, const FieldValue& read, const Field& field) {
  RC_ASSERT(read.is_null == written.value.is_null);
  if (read.is_null) return;
  std::string expected = written.bytes;
  // Tar has text where MDS has numbers.
  if (field.encoding == "cls" || field.encoding == "n") {
    expected = std::to_string(load_le<std::int64_t>(as_bytes(written.bytes).data()));
  }
  RC_ASSERT(as_text(read.bytes) == expected);
  if (field.type.kind != FieldKind::kArray) return;
  RC_ASSERT(read.dtype == written.value.dtype);
  RC_ASSERT(read.dimensions == written.value.dimensions);
  for (std::size_t d = 0; d < read.dimensions; ++d) {
    RC_ASSERT(read.shape[d] == written.value.shape[d]);
  }
}

// Writes random samples, reads all of them back, and compares field by field.
void round_trip(std::string_view format, const std::vector<Column>& pool) {
  Rng rng(*rc::gen::arbitrary<std::uint64_t>());
  WriterOptions options;
  for (const Column& column : pool) {
    if (rng.below(2) == 0) options.columns.push_back(column);
  }
  if (options.columns.empty()) options.columns.push_back(pool.front());
  options.size_limit = 1 + rng.below(20000);
  auto builder = std::move(make_dataset_builder(format, options)).value();
  const Schema schema = builder->schema();

  std::vector<std::vector<Owned>> rows;
  std::vector<FinishedFile> files;
  const std::uint64_t samples = 1 + rng.below(40);
  for (std::uint64_t i = 0; i < samples; ++i) {
    std::vector<Owned> row;
    for (std::size_t f = 0; f < schema.fields.size(); ++f) {
      row.push_back(random_value(schema.fields[f].type, rng, format == "wds" && f > 0));
    }
    rows.push_back(std::move(row));
    std::vector<FieldValue> values;
    for (Owned& owned : rows.back()) {
      owned.value.bytes = as_bytes(owned.bytes);
      values.push_back(owned.value);
    }
    const Status status = builder->add("", values, files);
    RC_ASSERT(status.is_ok());
  }
  RC_ASSERT(builder->finish(files).is_ok());

  std::shared_ptr<Reader> reader;
  std::vector<std::string> shards;
  if (format == "mds") {
    reader = std::move(read_mds_index(*files.back().bytes)).value();
    files.pop_back();
  }
  for (const FinishedFile& file : files) shards.push_back(*file.bytes);
  if (format == "wds") reader = read_tars(shards);

  std::size_t at = 0;
  std::vector<FieldValue> values(reader->schema().fields.size());
  for (std::uint32_t s = 0; s < shards.size(); ++s) {
    const ByteView shard = as_bytes(shards[s]);
    const auto locator = std::move(locator_of(*reader, s, shard)).value();
    RC_ASSERT(reader->shards()[s].samples > 0u);
    for (std::uint64_t i = 0; i < reader->shards()[s].samples; ++i, ++at) {
      FetchUnit unit;
      RC_ASSERT(locator->locate(i, unit).is_ok());
      const ByteRange range = unit.extents[0].range;
      RC_ASSERT(reader->view(shard.subspan(range.offset, range.length), 0, values).is_ok());
      for (std::size_t f = 0; f < schema.fields.size(); ++f) {
        const auto column = reader->schema().find(schema.fields[f].name);
        // An extension that no sample has is in no archive.
        if (!column) continue;
        expect_equal(rows[at][f], values[*column], reader->schema().fields[*column]);
      }
    }
  }
  RC_ASSERT(at == rows.size());
}

TEST(RoundTrip, OfMdsGivesBackEverySample) {
  const std::vector<Column> pool = {
      {"a", "int"},     {"b", "str"},   {"c", "bytes"},          {"d", "ndarray"},
      {"e", "float16"}, {"f", "uint8"}, {"g", "ndarray:uint16"}, {"h", "ndarray:float32:2,3"},
      {"i", "json"},    {"j", "jpeg"},  {"k", "str_int"},        {"l", "png"}};
  EXPECT_TRUE(rc::check([&] { round_trip("mds", pool); }));
}

TEST(RoundTrip, OfTarGivesBackEverySample) {
  const std::vector<Column> pool = {{"cls", "int"},   {"jpg", "jpeg"},  {"txt", "str"},
                                    {"json", "json"}, {"bin", "bytes"}, {"seg.png", "png"},
                                    {"n", "int"}};
  EXPECT_TRUE(rc::check([&] { round_trip("wds", pool); }));
}

}  // namespace
}  // namespace headrace::format
