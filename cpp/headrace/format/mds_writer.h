// Writes Mosaic MDS shards and index.json, byte for byte as Mosaic's own uncompressed writer does.
// Thread-safety: a builder belongs to one thread at a time.
// Ownership: a builder owns the shard under way; finished files are handed over.
#pragma once

#include "headrace/format/writer.h"

namespace headrace::format {

Result<std::unique_ptr<DatasetBuilder>> make_mds_builder(WriterOptions options);

}  // namespace headrace::format
