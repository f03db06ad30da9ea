#include "headrace/loader/index_reader.h"

#include "headrace/format/schema_json.h"
#include "headrace/format/tar_reader.h"

namespace headrace::loader {

Result<std::shared_ptr<format::Reader>> reader_from_index(
    const std::shared_ptr<const trust::IndexFile>& index) {
  if (index->format_name() != "wds") {
    return unimplemented("headrace.index is of the format '" +
                         std::string(index->format_name().substr(0, 40)) +
                         "', and only wds opens through it; make it again with `headrace index`");
  }
  auto schema = format::schema_from_json(index->schema());
  if (!schema.is_ok()) return schema.status().with_context(trust::kIndexName);
  format::TarTables tables;
  tables.schema = std::move(*schema);
  tables.shards.reserve(index->shard_count());
  for (std::uint32_t s = 0; s < index->shard_count(); ++s) {
    const trust::IndexShard& shard = index->shard(s);
    format::ShardInfo info{std::string(shard.name), shard.bytes, shard.samples, {}};
    if (shard.sha256 != Sha256Digest{}) info.hashes = {{"sha256", to_hex(shard.sha256)}};
    tables.shards.push_back(std::move(info));
  }
  tables.extents = [index](std::uint32_t shard) { return index->extents(shard); };
  tables.owner = index;
  auto reader = format::make_tar_reader(std::move(tables));
  if (!reader.is_ok()) return reader.status().with_context(trust::kIndexName);
  return reader;
}

}  // namespace headrace::loader
