// Writes WebDataset tar shards: ustar, read by webdataset and by every tar program.
// Thread-safety: a builder belongs to one thread at a time.
// Ownership: a builder owns the shard under way; finished files are handed over.
#pragma once

#include "headrace/format/writer.h"

namespace headrace::format {

// Columns are extensions; encodings are bytes, str, int (decimal text), json, jpeg and png. A null
// leaves the file out of its sample. Shards are named shard-000000.tar, keys without a name
// 000000000. No index is written: it holds digests and is made from the finished shards.
Result<std::unique_ptr<DatasetBuilder>> make_wds_builder(WriterOptions options);

}  // namespace headrace::format
