// ByteSource: whatever answers "these bytes of that object by then": stores, cache tiers, agents.
// Thread-safety: every member may be called from any thread.
// Ownership: a source outlives its requests; close() ends those that are under way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "headrace/base/bytes.h"
#include "headrace/base/clock.h"
#include "headrace/base/lease.h"
#include "headrace/base/status.h"

namespace headrace::store {

// One object of a source. `key` is relative to the source's root, '/'-separated, and never leaves
// it.
struct ObjectRef {
  std::string key;
  // What the object was when it was first seen (ETag, version, or size and time of a file). When
  // set, bytes of any other version are an error, never delivered.
  std::string pin{};
  std::optional<std::uint64_t> size{};
};

struct ObjectInfo {
  std::uint64_t size = 0;
  std::string pin{};
};

// Who goes first when requests wait: a rank stands still / soon needed / later / bulk work.
enum class Priority : std::uint8_t { kDemand, kNear, kFar, kBulk };

struct ReadReply {
  Lease memory;              // the destination of the request
  std::uint64_t length = 0;  // bytes delivered, at the start of `memory`
  ObjectInfo info;
};
using ReadDone = std::function<void(Result<ReadReply>)>;

struct ReadRequest {
  ObjectRef object;
  // Delivered back to back into `destination`, which holds at least their sum.
  std::vector<ByteRange> ranges;
  // Allows the last range to end past the end of the object; otherwise that is Corrupt.
  bool may_be_short = false;
  TimePoint deadline = kForever;
  Priority priority = Priority::kDemand;
  Lease destination;
  std::stop_token stop{};
  // Called exactly once, on the executor of the source. On failure the lease has been returned.
  ReadDone done;
};

// Bytes that can be addressed without a request (memory, mapped files).
struct Peeked {
  ByteView bytes;
  std::shared_ptr<const void> owner;  // keeps `bytes` valid
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Starts reading and returns at once.
  virtual void submit(ReadRequest request) = 0;

  // The whole object, when its bytes can be addressed without a request; nullopt when they cannot
  // (the usual answer of anything remote), an error when the object is missing or is not what
  // `object` pins.
  virtual Result<std::optional<Peeked>> peek(const ObjectRef& object) = 0;

  // A person's name for an object, for messages: a path or URL, without secrets or query string.
  virtual std::string describe(std::string_view key) const = 0;

  // Fails what is under way with Cancelled, and everything later. Idempotent; returns once no
  // completion will be called any more.
  virtual void close() = 0;
};

}  // namespace headrace::store
