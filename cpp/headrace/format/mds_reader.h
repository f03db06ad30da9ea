// Reads Mosaic MDS data sets: index.json says which shards there are, each shard says where its
// samples lie.
// Thread-safety: the format object is stateless; readers are immutable.
// Ownership: readers own their tables.
#pragma once

#include <string_view>

#include "headrace/format/reader.h"

namespace headrace::format {

inline constexpr std::string_view kMdsIndexName = "index.json";

const Format& mds_format();

// The reader of one index.json. Everything in it is checked: Corrupt and Unimplemented name the
// shard by number and the field.
Result<std::shared_ptr<Reader>> read_mds_index(std::string_view text);

}  // namespace headrace::format
