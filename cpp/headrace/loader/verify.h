// Reads a whole data set and compares it with what its index says of it.
// Thread-safety: blocking; not from a worker of the executor.
// Ownership: borrows its arguments for the time of the call.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headrace/format/reader.h"
#include "headrace/loader/object_stream.h"

namespace headrace::loader {

struct Problem {
  std::uint32_t shard = 0;
  std::string object;                   // path or URL
  std::optional<std::uint64_t> sample;  // within the shard
  std::optional<std::uint64_t> offset;  // byte in the object where the sample begins
  std::string what;
};

struct VerifyOptions {
  StreamOptions stream;            // its `progress` and `stop_at_failure` are not used
  std::size_t problems_max = 100;  // kept for each shard; more are counted
  // Called on the calling thread.
  std::function<void(std::uint64_t bytes, std::uint64_t total)> progress;
};

struct VerifyReport {
  std::uint64_t shards = 0;
  std::uint64_t samples = 0;              // whose structure was looked at
  std::uint64_t bytes = 0;                // read
  std::uint64_t shards_without_hash = 0;  // only their size and structure could be checked
  std::vector<Problem> problems;          // by shard, then in the order of the bytes
  std::uint64_t problems_left_out = 0;

  bool is_good() const { return problems.empty(); }
};

// Checks of each shard its size, every hash that the index brings along, and that every sample can
// be found and holds its fields; pictures are not decoded. Goes on after a problem. Memory: one
// part and the largest sample for each shard under way. Fails only when it was stopped.
Result<VerifyReport> verify_dataset(store::ByteSource& source, const format::Reader& reader,
                                    exec::Executor& executor, const VerifyOptions& options);

}  // namespace headrace::loader
