// Headrace's index file: which shards a data set has and where each sample lies in them, for data
// without a usable index of its own. docs/index-format.md has the bytes.
// Thread-safety: an IndexFile is immutable; an IndexBuilder belongs to one thread at a time.
// Ownership: an IndexFile shares the owner of its bytes; views it gives live as long as it does.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "headrace/base/bytes.h"
#include "headrace/base/json.h"
#include "headrace/base/sha256.h"
#include "headrace/base/status.h"
#include "headrace/base/version.h"

namespace headrace::trust {

inline constexpr std::string_view kIndexName = "headrace.index";
inline constexpr std::uint32_t kIndexVersion = 1;

struct IndexShard {
  std::string_view name;  // key relative to the data set's root
  std::string_view pin;   // what the object was when it was indexed; empty when not recorded
  std::uint64_t bytes = 0;
  std::uint64_t samples = 0;
  std::uint64_t first_sample = 0;  // of the data set
  Sha256Digest sha256{};           // of the whole file
};

class IndexFile {
 public:
  // Checks the structure and every table but the extents, which extents() checks shard by shard:
  // the cost is proportional to the shards, not to the samples. `bytes` must be aligned to 8.
  // Corrupt says what is wrong and where.
  static Result<std::shared_ptr<const IndexFile>> parse(std::shared_ptr<const void> owner,
                                                        ByteView bytes);

  std::string_view format_name() const { return format_; }       // "wds"
  std::string_view library_version() const { return library_; }  // that wrote the file
  const Json& schema() const { return schema_; }
  std::uint64_t samples() const { return samples_; }
  std::uint32_t shard_count() const { return static_cast<std::uint32_t>(shards_.size()); }
  const IndexShard& shard(std::uint32_t number) const { return shards_[number]; }

  // Where the samples of a shard lie, in order. Checked on each call: the checksum, and that they
  // are in order, do not overlap and end inside the shard. About 1 ns a sample.
  Result<std::span<const ByteRange>> extents(std::uint32_t number) const;

 private:
  IndexFile() = default;

  std::shared_ptr<const void> owner_;
  std::string format_;
  std::string library_;
  Json schema_;
  std::uint64_t samples_ = 0;
  std::vector<IndexShard> shards_;
  std::vector<std::uint64_t> extents_checksums_;
  std::span<const ByteRange> extents_;
};

// Same calls, same bytes.
class IndexBuilder {
 public:
  // `library` is the version that the file says wrote it.
  IndexBuilder(std::string format, Json schema, std::string library = HEADRACE_VERSION);

  // Adds the next shard; `shard.samples` and `shard.first_sample` follow from the extents.
  // InvalidArgument when the name is no key or was used, or the extents do not lie in the shard.
  Status add_shard(const IndexShard& shard, std::span<const ByteRange> extents);
  // The file. InvalidArgument when it has no shard.
  Result<std::string> finish() const;

 private:
  struct Shard {
    std::string name;
    std::string pin;
    std::uint64_t bytes = 0;
    std::uint64_t samples = 0;
    Sha256Digest sha256{};
    std::uint64_t extents_checksum = 0;
  };

  std::string meta_;
  std::vector<Shard> shards_;
  std::unordered_set<std::string> names_;
  std::vector<ByteRange> extents_;
};

}  // namespace headrace::trust
