// Residency: which ranges of remote shards are in memory, and which may leave it.
// Thread-safety: none of its own; the engine's mutex guards it.
// Ownership: shares each Range with the works that use it; a range's memory goes back to the arena
// with its last owner.
#pragma once

#include <compare>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "headrace/base/bytes.h"
#include "headrace/base/lease.h"
#include "headrace/base/status.h"

namespace headrace::loader {

struct Work;

// A fetched piece: `count` neighbouring samples of one run, read in one request.
struct RangeKey {
  std::uint64_t epoch = 0;
  std::uint32_t run = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  auto operator<=>(const RangeKey&) const = default;
};

struct Range {
  RangeKey key;
  std::uint32_t shard = 0;
  std::vector<ByteRange> extents;  // of the shard, ascending; lie back to back in memory
  std::uint64_t bytes = 0;
  bool is_ready = false;
  Status failure;
  Lease memory;                     // written before is_ready, read-only afterwards
  std::size_t users = 0;            // works that still need it
  const Work* last_user = nullptr;  // the work that was counted last, to count each once
  std::vector<std::weak_ptr<Work>> waiting;
  std::list<std::shared_ptr<Range>>::iterator idle_place;
  bool is_idle = false;

  // The bytes [wanted) of the shard; nullopt when they were not part of what was fetched.
  std::optional<ByteView> view(ByteRange wanted) const;
};

class Residency {
 public:
  explicit Residency(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t bytes_max() const { return bytes_max_; }

  // The range of that key, and one more user of it; null when it is not here.
  std::shared_ptr<Range> use(const RangeKey& key);
  // Makes room for `bytes` more by dropping idle ranges, the longest idle first; what was dropped
  // is handed to `dropped`. False when even that is not enough.
  bool make_room(std::uint64_t bytes, std::vector<std::shared_ptr<Range>>& dropped);
  // Drops the longest idle range, for memory that somebody else needs. False when none is idle.
  bool drop_one(std::vector<std::shared_ptr<Range>>& dropped);
  // Adds a range that has one user; room must have been made.
  void add(std::shared_ptr<Range> range);
  // One user less; without users a range is idle, and a failed one is forgotten.
  void release(const std::shared_ptr<Range>& range);

 private:
  void forget(const std::shared_ptr<Range>& range);

  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  std::map<RangeKey, std::shared_ptr<Range>> ranges_;
  std::list<std::shared_ptr<Range>> idle_;  // longest idle first
};

}  // namespace headrace::loader
