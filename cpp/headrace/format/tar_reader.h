// Reads WebDataset tar archives at random, by the tables of Headrace's index.
// Thread-safety: readers are immutable.
// Ownership: readers share the owner of the tables.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "headrace/format/reader.h"

namespace headrace::format {

struct TarTables {
  Schema schema;  // as WdsSchemaBuilder makes it: the key first
  std::vector<ShardInfo> shards;
  // Where the samples of a shard lie, in order; called when the shard is first used.
  std::function<Result<std::span<const ByteRange>>(std::uint32_t shard)> extents;
  std::shared_ptr<const void> owner;  // keeps valid what `extents` returns
};

// A unit is one sample: its headers and files as they lie in the archive. view() reads the headers
// again, so bytes that are not such a sample are Corrupt.
Result<std::shared_ptr<Reader>> make_tar_reader(TarTables tables);

}  // namespace headrace::format
