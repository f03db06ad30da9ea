// Any bytes as a shard of every kind of column: located samples stay inside the shard, and values
// stay inside their samples.
#include <cstdint>
#include <string>

#include "headrace/base/check.h"
#include "headrace/format/mds_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headrace;
  if (size < 8 || size > (1 << 20)) return 0;
  const ByteView shard = std::as_bytes(std::span(data, size));
  const std::uint64_t samples = load_le<std::uint32_t>(shard.data());
  const std::string index =
      "{\"shards\": [{\"column_encodings\": [\"int\", \"str\", \"ndarray\", \"ndarray:uint16\", "
      "\"ndarray:float16:2\", \"jpeg\"], \"column_names\": [\"a\", \"b\", \"c\", \"d\", \"e\", "
      "\"f\"], \"column_sizes\": [8, null, null, null, 4, null], \"compression\": null, "
      "\"format\": \"mds\", \"raw_data\": {\"basename\": \"s\", \"bytes\": " +
      std::to_string(size) + ", \"hashes\": {}}, \"samples\": " + std::to_string(samples) +
      ", \"version\": 2}], \"version\": 2}";
  const auto reader = format::read_mds_index(index);
  if (!reader.is_ok()) return 0;
  const ByteRange table = (*reader)->locator_extent(0)->range;
  HR_CHECK(table.end() <= size, "the table leaves the shard");
  const auto locator = (*reader)->make_locator(0, shard.subspan(table.offset, table.length));
  if (!locator.is_ok()) return 0;
  format::FetchUnit unit;
  format::FieldValue values[6];
  for (std::uint64_t i = 0; i < samples; ++i) {
    HR_CHECK((*locator)->locate(i, unit).is_ok(), "a checked table does not locate");
    const ByteRange range = unit.extents[0].range;
    HR_CHECK(range.end() <= size, "a sample leaves the shard");
    const ByteView sample = shard.subspan(range.offset, range.length);
    if (!(*reader)->view(sample, 0, values).is_ok()) continue;
    for (const format::FieldValue& value : values) {
      HR_CHECK(value.bytes.empty() ||
                   (value.bytes.data() >= sample.data() &&
                    value.bytes.data() + value.bytes.size() <= sample.data() + sample.size()),
               "a value leaves its sample");
    }
  }
  return 0;
}
