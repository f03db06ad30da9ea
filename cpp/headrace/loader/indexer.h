// Makes headrace.index for WebDataset tar shards by reading each of them once.
// Thread-safety: blocking; not from a worker of the executor.
// Ownership: borrows store and executor for the time of the call.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headrace/loader/object_stream.h"
#include "headrace/store/blocking.h"

namespace headrace::loader {

struct IndexerOptions {
  std::vector<std::string> shards;  // keys relative to the store's root, in the order to be kept
  // Records what each object was (ETag, version); the index then fits no copy of the data.
  bool record_pins = false;
  StreamOptions stream;  // its `progress` is not used
  // Called on the calling thread. `total` is an estimate until every shard has been begun.
  std::function<void(std::uint64_t bytes, std::uint64_t total)> progress;
};

struct BuiltIndex {
  std::string bytes;  // of the file headrace.index
  std::uint64_t shards = 0;
  std::uint64_t samples = 0;
  std::uint64_t stored_bytes = 0;  // of all shards
};

// Memory: one part for each shard under way, and 16 bytes a sample. The same shards give the same
// bytes, whatever the executor. The error is that of the first shard, in the given order, that
// failed by itself.
Result<BuiltIndex> build_index(store::ByteSource& source, exec::Executor& executor,
                               const IndexerOptions& options);

// Writes the file as headrace.index below the store's root: InvalidArgument when there is one and
// `overwrite` is not set.
Status save_index(store::ObjectStore& store, const store::Blocking& how, const BuiltIndex& index,
                  bool overwrite);

}  // namespace headrace::loader
