// Writing a data set without doing I/O: samples go in, finished shards and the index come out.
// Thread-safety: a writer belongs to one thread at a time.
// Ownership: add() borrows its arguments; finished files are handed over.
#pragma once

#include <cstdint>
#include <functional>
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

struct FinishedFile {
  std::string name;  // relative to the data set's root
  std::shared_ptr<const std::string> bytes;
};

// One column of a data set to be written: its name and the format's encoding ("jpeg", "int").
struct Column {
  std::string name;
  std::string encoding;
};

struct WriterOptions {
  std::vector<Column> columns;          // in any order; names must differ
  std::uint64_t size_limit = 64 << 20;  // bytes of a shard, soft: one sample may exceed it alone
  std::vector<std::string> hashes;      // recorded for each shard, e.g. "sha256"; MDS only
  // Lower-case hex of a named hash (trust::hash_hex); needed when `hashes` is not empty. It is an
  // argument because the layers of formats and of hashes do not know each other.
  std::function<Result<std::string>(std::string_view algorithm, ByteView bytes)> hash;
};

class DatasetBuilder {
 public:
  virtual ~DatasetBuilder() = default;

  // The schema that results from the columns, in the order in which add() takes values: both
  // formats keep columns in the order of their names.
  virtual const Schema& schema() const = 0;
  // Adds one sample, one value for each field; `key` names it where the format has names (tar) and
  // may be empty there for a running number. Files that became complete are appended to `out`. Same
  // samples, same options: same bytes.
  virtual Status add(std::string_view key, std::span<const FieldValue> values,
                     std::vector<FinishedFile>& out) = 0;
  // Ends the last shard and writes the index, which comes last. No add() afterwards.
  virtual Status finish(std::vector<FinishedFile>& out) = 0;
};

// `format` is "mds" or "wds". Unknown columns, encodings and limits are InvalidArgument by name.
Result<std::unique_ptr<DatasetBuilder>> make_dataset_builder(std::string_view format,
                                                             WriterOptions options);

}  // namespace headrace::format
