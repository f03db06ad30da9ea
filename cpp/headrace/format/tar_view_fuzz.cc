// Any bytes as one sample of a tar archive: an error, or values that lie inside the bytes.
#include <cstdint>

#include "headrace/base/check.h"
#include "headrace/format/tar_reader.h"
#include "headrace/format/tar_scanner.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headrace;
  static const auto reader = [] {
    format::TarSample sample;
    sample.fields = {{"jpg", 0, 0}, {"cls", 0, 0}, {"seg.png", 0, 0}};
    format::WdsSchemaBuilder schema;
    schema.add(sample);
    schema.add({});  // makes every field nullable
    format::TarTables tables;
    tables.schema = std::move(schema.finish()).value();
    return std::move(format::make_tar_reader(std::move(tables))).value();
  }();
  const ByteView unit = std::as_bytes(std::span(data, size));
  std::vector<format::FieldValue> values(4);
  if (!reader->view(unit, 0, values).is_ok()) return 0;
  HR_CHECK(!values[0].is_null, "a sample without a key");
  for (const format::FieldValue& value : values) {
    if (value.is_null || value.held || value.bytes.empty()) continue;
    HR_CHECK(value.bytes.data() >= unit.data() &&
                 value.bytes.data() + value.bytes.size() <= unit.data() + unit.size(),
             "a value leaves its unit");
  }
  return 0;
}
