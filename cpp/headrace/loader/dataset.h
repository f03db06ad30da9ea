// Dataset: an opened data set: where it lies, what its index says, and random access to samples.
// Thread-safety: any thread; blocking calls must not come from a worker of the executor.
// Ownership: owns its store and tables; the executor and metrics passed in must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/format/reader.h"
#include "headrace/loader/sample_set.h"
#include "headrace/store/blocking.h"
#include "headrace/store/open_store.h"

namespace headrace::loader {

struct OpenOptions {
  std::string url;                   // of the folder that holds the shards
  std::optional<std::string> split;  // a folder below it
  std::optional<std::string> index;  // URL or path of a headrace.index that lies elsewhere
  store::StoreOptions store;
};

// A sample with its own copy of the bytes; `values` point into `bytes`, which therefore is no
// string: a short one would move its characters along.
struct LoadedSample {
  std::vector<std::byte> bytes;
  std::vector<format::FieldValue> values;
};

class Dataset {
 public:
  // One round of requests for the known index names, no listing. NotFound tells what was looked for
  // and which command makes an index.
  static Result<std::shared_ptr<Dataset>> open(const OpenOptions& options,
                                               const store::StoreDeps& deps);
  // For tests and simulation: a store that is already there.
  static Result<std::shared_ptr<Dataset>> open(std::unique_ptr<store::ObjectStore> store,
                                               const store::StoreDeps& deps);
  ~Dataset();
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  const std::string& url() const;
  const format::Reader& reader() const;
  const format::Schema& schema() const { return reader().schema(); }
  store::ObjectStore& store() const;
  std::uint64_t samples() const;
  std::uint64_t stored_bytes() const;
  const SampleSet& all() const;

  // SHA-256, in hex, over format, schema and shard table (names, sizes, counts, hashes): the same
  // for a copy of the data anywhere, another one for any other data.
  const std::string& identity() const;

  // Reads sample `ordinal` of the data set, waiting as long as the store's request timeout.
  Result<LoadedSample> read(std::uint64_t ordinal);

  // The whole shard when it can be addressed without a request, checked against the index; nullopt
  // otherwise. Looked up once, then kept.
  Result<std::optional<ByteView>> peek_shard(std::uint32_t shard);
  // The locator of a shard when it is at hand or can be made from peeked bytes; null when its range
  // must be fetched first (see adopt_locator). It lives as long as the data set.
  Result<const format::ShardLocator*> locator(std::uint32_t shard);
  // Makes and keeps the locator from the fetched bytes of reader().locator_extent(shard).
  Result<const format::ShardLocator*> adopt_locator(std::uint32_t shard, ByteView bytes);
  // The object of a shard with its pin, once known; remember_pin keeps what a first reply said.
  store::ObjectRef object(std::uint32_t shard) const;
  void remember_pin(std::uint32_t shard, const std::string& pin);
  // "s3://bucket/ds/shard.00003.mds sample 17 (number 30417 of the data set)".
  std::string describe(std::uint32_t shard, std::uint64_t sample) const;

  // Ends requests under way; everything later answers Cancelled. Idempotent.
  void close();

 private:
  struct Impl;
  explicit Dataset(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::loader
