// Small data sets for the tests of this layer.
// Thread-safety: pure.
// Ownership: results own their bytes; a Sample owns what its values point to.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "headrace/base/sha256.h"
#include "headrace/format/reader.h"
#include "headrace/format/writer.h"

namespace headrace::format {

inline FieldValue text_value(std::string_view bytes) {
  FieldValue value;
  value.is_null = false;
  value.bytes = as_bytes(bytes);
  return value;
}

// Borrows `number`.
inline FieldValue int_value(const std::int64_t& number) {
  FieldValue value = text_value({reinterpret_cast<const char*>(&number), sizeof number});
  value.dtype = DType::kI64;
  return value;
}

// The only named hash that this layer can compute in its tests.
inline Result<std::string> test_hash(std::string_view algorithm, ByteView bytes) {
  if (algorithm != "sha256") return invalid_argument("no hash " + std::string(algorithm));
  return to_hex(sha256(bytes));
}

inline const FinishedFile& find_file(const std::vector<FinishedFile>& files,
                                     std::string_view name) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const FinishedFile& file) { return file.name == name; });
  HR_CHECK(found != files.end(), "no such file");
  return *found;
}

// One sample as a row of texts, nulls as "<null>".
inline Result<std::vector<std::string>> read_row(const Reader& reader, const ShardLocator& locator,
                                                 ByteView shard, std::uint64_t sample) {
  FetchUnit unit;
  HR_TRY(locator.locate(sample, unit));
  std::string bytes;
  for (const Extent& extent : unit.extents) {
    if (extent.range.end() > shard.size()) return corrupt("the unit passes the end of the shard");
    bytes += as_text(shard.subspan(extent.range.offset, extent.range.length));
  }
  std::vector<FieldValue> values(reader.schema().fields.size());
  HR_TRY(reader.view(as_bytes(bytes), sample - unit.first_sample, values));
  std::vector<std::string> row;
  for (const FieldValue& value : values) {
    row.emplace_back(value.is_null ? "<null>" : as_text(value.bytes));
  }
  return row;
}

inline Result<std::shared_ptr<const ShardLocator>> locator_of(const Reader& reader,
                                                              std::uint32_t shard, ByteView file) {
  const auto extent = reader.locator_extent(shard);
  if (!extent) return reader.make_locator(shard, {});
  const std::uint64_t begin = std::min<std::uint64_t>(extent->range.offset, file.size());
  const std::uint64_t length = std::min<std::uint64_t>(extent->range.length, file.size() - begin);
  return reader.make_locator(shard, file.subspan(begin, length));
}

}  // namespace headrace::format
