#include "headrace/loader/indexer.h"

#include <algorithm>
#include <memory>

#include "headrace/base/key.h"
#include "headrace/format/schema_json.h"
#include "headrace/loader/shard_scan.h"

namespace headrace::loader {
namespace {

// Known sizes, and their mean for the shards that nobody has asked yet.
std::uint64_t estimate_total(const std::vector<std::unique_ptr<ShardScan>>& scans) {
  std::uint64_t known = 0;
  std::uint64_t bytes = 0;
  for (const auto& scan : scans) {
    known += scan->bytes() > 0 ? 1 : 0;
    bytes += scan->bytes();
  }
  if (known == 0) return 0;
  return bytes + (bytes / known) * (scans.size() - known);
}

// The first failure that is not just a consequence of another one.
Status first_failure(const std::vector<Status>& outcomes) {
  Status stopped;
  for (const Status& outcome : outcomes) {
    if (outcome.is_ok()) continue;
    if (outcome.code() != Code::kCancelled) return outcome;
    stopped = outcome;
  }
  return stopped;
}

}  // namespace

Result<BuiltIndex> build_index(store::ByteSource& source, exec::Executor& executor,
                               const IndexerOptions& options) {
  if (options.shards.empty()) {
    return invalid_argument("no shards are given; name them, e.g. shard-{000000..000099}.tar");
  }
  std::vector<std::unique_ptr<ShardScan>> scans;
  std::vector<ObjectVisitor*> visitors;
  std::vector<store::ObjectRef> objects;
  for (const std::string& key : options.shards) {
    HR_TRY(check_key(key));
    scans.push_back(std::make_unique<ShardScan>(key, source.describe(key)));
    visitors.push_back(scans.back().get());
    objects.push_back({key, "", {}});
  }
  StreamOptions stream = options.stream;
  stream.stop_at_failure = true;
  stream.progress = nullptr;
  if (options.progress) {
    stream.progress = [&](std::uint64_t bytes) {
      options.progress(bytes, std::max(bytes, estimate_total(scans)));
    };
  }
  HR_TRY(first_failure(stream_objects(source, executor, objects, visitors, stream)));

  format::WdsSchemaBuilder fields;
  for (const auto& scan : scans) fields.merge(scan->fields());
  HR_ASSIGN(const format::Schema schema, fields.finish());
  trust::IndexBuilder builder("wds", format::schema_to_json(schema));
  BuiltIndex out;
  for (const auto& scan : scans) {
    HR_TRY(scan->add_to(builder, options.record_pins));
    out.samples += scan->samples();
    out.stored_bytes += scan->bytes();
  }
  if (out.samples == 0) {
    return invalid_argument("the shards hold no samples: a sample is a file called key.extension");
  }
  out.shards = scans.size();
  HR_ASSIGN(out.bytes, builder.finish());
  return out;
}

Status save_index(store::ObjectStore& store, const store::Blocking& how, const BuiltIndex& index,
                  bool overwrite) {
  const auto saved = store::put(store, how, trust::kIndexName, index.bytes, !overwrite);
  if (saved.status().code() == Code::kInvalidArgument && !overwrite) {
    return saved.status().with_context("an index is there already; replace it with overwrite");
  }
  return saved.status();
}

}  // namespace headrace::loader
