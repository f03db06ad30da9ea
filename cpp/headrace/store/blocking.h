// Blocking forms of the store calls, for opening, writing and tools; never called from a task.
// Thread-safety: any thread that is not a worker of the executor.
// Ownership: results are owned by the caller.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/exec/executor.h"
#include "headrace/store/object_store.h"

namespace headrace::store {

// What blocking calls need besides the store: where to wait and how long.
struct Blocking {
  exec::Executor& executor;
  Duration timeout = std::chrono::seconds(60);
};

struct WholeObject {
  std::string bytes;
  ObjectInfo info;
};

// Reads an object of unknown size, one request when it is below 1 MiB. Exhausted when it is larger
// than `bytes_max`, before memory for it is taken.
Result<WholeObject> read_whole(ByteSource& source, const Blocking& how, std::string_view key,
                               std::uint64_t bytes_max);
// Several at once, in one round; each has its own result.
std::vector<Result<WholeObject>> read_whole_many(ByteSource& source, const Blocking& how,
                                                 const std::vector<std::string>& keys,
                                                 std::uint64_t bytes_max);
// Corrupt, before memory is taken, for a range longer than the object (1 GiB when its size is not
// known).
Result<std::string> read_range(ByteSource& source, const Blocking& how, const ObjectRef& object,
                               ByteRange range);
Result<ObjectInfo> head(ObjectStore& store, const Blocking& how, std::string_view key);
Result<ObjectInfo> put(ObjectStore& store, const Blocking& how, std::string_view key,
                       std::string body, bool only_if_absent = false);
Status remove(ObjectStore& store, const Blocking& how, std::string_view key);

}  // namespace headrace::store
