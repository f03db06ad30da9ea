// Reading a data set without doing I/O: which bytes are needed, where a sample lies, what it holds.
// Thread-safety: Reader and ShardLocator are immutable once made; any thread may use them.
// Ownership: readers own their tables or share the mapped index they were made from.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/bytes.h"
#include "headrace/base/status.h"
#include "headrace/format/field.h"

namespace headrace::format {

// A hash the data set brings along: algorithm in hashlib's or xxhash's spelling, lower-case hex.
struct NamedHash {
  std::string algorithm;
  std::string hex;
};

struct ShardInfo {
  std::string name;  // key relative to the data set's root, checked to stay inside it
  std::uint64_t bytes = 0;
  std::uint64_t samples = 0;
  std::vector<NamedHash> hashes;  // of the whole stored file
};

// What must be undone after fetching, in this order; empty means that bytes are as stored.
enum class UnitCodec : std::uint8_t { kZstd, kGzip };

// Bytes of one object of a data set; `object` is a shard number.
struct Extent {
  std::uint32_t object = 0;
  ByteRange range;
};

// The smallest thing that can be decoded alone: a sample, a compressed shard, a row group.
struct FetchUnit {
  std::vector<Extent> extents;  // concatenated, they are the stored unit
  std::vector<UnitCodec> codecs;
  std::uint64_t decoded_bytes = 0;  // counts against the memory budget
  std::uint64_t first_sample = 0;   // of the shard
  std::uint64_t samples = 1;
};

// Where the samples of one shard lie.
class ShardLocator {
 public:
  virtual ~ShardLocator() = default;
  // Fills `out` (reused: no allocation in the steady state). `sample` counts within the shard and
  // must be below its `samples`; an offset that leaves the shard is Corrupt.
  virtual Status locate(std::uint64_t sample, FetchUnit& out) const = 0;
};

class Reader {
 public:
  virtual ~Reader() = default;

  virtual std::string_view format_name() const = 0;  // "mds", "wds"
  virtual const Schema& schema() const = 0;
  virtual const std::vector<ShardInfo>& shards() const = 0;
  // True when units hold many samples, so that the order must keep them together.
  virtual bool has_large_units() const { return false; }

  // The small range that locating in this shard takes first (an MDS offset table), or nullopt when
  // the index already holds it.
  virtual std::optional<Extent> locator_extent(std::uint32_t shard) const = 0;
  // `bytes` are those of locator_extent (empty when there is none). Everything in them is checked
  // here: monotonic, inside the shard, as many as the index says.
  virtual Result<std::shared_ptr<const ShardLocator>> make_locator(std::uint32_t shard,
                                                                   ByteView bytes) const = 0;

  // Finds the fields of sample `index` (0 .. samples-1 of the unit) in the decoded unit. `values`
  // has one entry for each field of the schema. A value that breaks the schema is Corrupt.
  virtual Status view(ByteView unit, std::uint64_t index, std::span<FieldValue> values) const = 0;
};

// Bytes an index load still wants; `length` 0 asks for the whole object.
struct Need {
  std::string object;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

// What has been fetched so far, whole, by object name.
struct Fetched {
  std::map<std::string, std::shared_ptr<const std::string>, std::less<>> objects;
};

struct LoadStep {
  std::vector<Need> needs;         // fetch these and call again, or
  std::shared_ptr<Reader> reader;  // done
};

// A format that opens by an index of its own. Data without one opens through Headrace's index.
class Format {
 public:
  virtual ~Format() = default;
  virtual std::string_view name() const = 0;
  // The object whose presence marks this format ("index.json").
  virtual std::string_view index_name() const = 0;
  virtual Result<LoadStep> load_index(const Fetched& have) const = 0;
};

// Every format of this build that opens by its own index, in the order in which they are tried.
std::span<const Format* const> self_indexed_formats();

}  // namespace headrace::format
