// Reads whole objects from start to end, several at once, in parts and within a fixed memory: for
// indexing and verifying, where every byte is looked at once.
// Thread-safety: stream_objects blocks and must not be called by a worker of the executor.
// Ownership: borrows source, executor and visitors for the time of the call.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "headrace/exec/executor.h"
#include "headrace/store/byte_source.h"

namespace headrace::loader {

// Receives the bytes of one object, in order, one call at a time, on workers of the executor.
class ObjectVisitor {
 public:
  virtual ~ObjectVisitor() = default;
  // Comes once, before the first byte.
  virtual Status begin(const store::ObjectInfo& info) = 0;
  virtual Status take(ByteView part) = 0;
  // Comes once, after the last byte.
  virtual Status end() = 0;
};

struct StreamOptions {
  std::uint64_t part_bytes = 4 << 20;  // of one request; 4 KiB to 1 GiB
  std::uint32_t objects_at_once = 0;   // 0: twice the width of the executor. Each holds one part.
  Duration timeout = std::chrono::seconds(60);  // of one request
  bool stop_at_failure = true;                  // else the others go on
  std::stop_token stop;
  // Called on the calling thread from time to time: bytes read so far.
  std::function<void(std::uint64_t bytes)> progress;
};

// The outcome of each object: of the source or of its visitor. Objects that were not finished
// because another failed or somebody asked to stop are Cancelled. All parts of an object are of one
// version of it.
std::vector<Status> stream_objects(store::ByteSource& source, exec::Executor& executor,
                                   const std::vector<store::ObjectRef>& objects,
                                   const std::vector<ObjectVisitor*>& visitors,
                                   const StreamOptions& options);

}  // namespace headrace::loader
