// DatasetWriter: packs samples into a data set at a path or URL, where it appears whole or not at
// all.
// Thread-safety: one thread at a time; never a worker of the executor.
// Ownership: owns the builder and the store it writes to; executor and metrics outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "headrace/format/writer.h"
#include "headrace/store/open_store.h"

namespace headrace::loader {

struct DatasetWriterOptions {
  std::string format = "mds";    // or "wds"
  format::WriterOptions writer;  // its `hash` is filled in
  // Replaces a data set that is there; otherwise that is InvalidArgument.
  bool overwrite = false;
  store::StoreOptions store;
  Duration put_timeout = std::chrono::seconds(600);  // of one file
};

// At a local path everything is written into `<path>.partial` beside it and renamed when all is
// there; a set that is overwritten stays in place until then. Elsewhere the shards go first and the
// index last, so that nothing opens before it is complete; a set that is overwritten loses its
// index first, and of an abandoned one shards may remain, which nothing reads.
class DatasetWriter {
 public:
  static Result<std::unique_ptr<DatasetWriter>> create(std::string_view url,
                                                       DatasetWriterOptions options,
                                                       const store::StoreDeps& deps);
  // Into a store that is there already, handled as a remote one.
  static Result<std::unique_ptr<DatasetWriter>> create(std::unique_ptr<store::ObjectStore> store,
                                                       DatasetWriterOptions options,
                                                       const store::StoreDeps& deps);
  // Abandons what was not finished; a local folder is removed.
  ~DatasetWriter();
  DatasetWriter(const DatasetWriter&) = delete;
  DatasetWriter& operator=(const DatasetWriter&) = delete;

  // Columns in the order in which write() takes values.
  const format::Schema& schema() const;

  // Adds a sample. InvalidArgument names what is wrong with it and leaves the set as it was: going
  // on is fine. After any other failure every call answers with that failure.
  Status write(std::string_view key, std::span<const format::FieldValue> values);
  // Writes what is left and the index, and makes the set appear. No write() afterwards.
  Status finish();

  struct Progress {
    std::uint64_t samples = 0;
    std::uint64_t shards = 0;  // complete, handed to the store
    std::uint64_t bytes = 0;   // of those
  };
  Progress progress() const;

 private:
  struct Impl;
  explicit DatasetWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::loader
