// Any bytes as index.json: an error or a reader whose tables are within bounds.
#include <cstdint>

#include "headrace/base/check.h"
#include "headrace/base/key.h"
#include "headrace/format/mds_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headrace;
  const auto reader = format::read_mds_index({reinterpret_cast<const char*>(data), size});
  if (!reader.is_ok()) return 0;
  for (std::uint32_t s = 0; s < (*reader)->shards().size(); ++s) {
    const format::ShardInfo& info = (*reader)->shards()[s];
    HR_CHECK(check_key(info.name).is_ok(), "a name leaves the root");
    HR_CHECK((*reader)->locator_extent(s)->range.end() <= info.bytes, "the table leaves the shard");
  }
  return 0;
}
