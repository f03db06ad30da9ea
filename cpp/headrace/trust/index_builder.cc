#include "headrace/base/key.h"
#include "headrace/base/utf8.h"
#include "headrace/trust/hasher.h"
#include "headrace/trust/index.h"
#include "headrace/trust/index_layout.h"

namespace headrace::trust {
namespace {

template <typename T>
void append_raw(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

IndexBuilder::IndexBuilder(std::string format, Json schema, std::string library) {
  Json meta = Json::object();
  meta.set("format", Json::string(std::move(format)));
  meta.set("library", Json::string(std::move(library)));
  meta.set("schema", std::move(schema));
  meta_ = dump_json(meta);
}

Status IndexBuilder::add_shard(const IndexShard& shard, std::span<const ByteRange> extents) {
  HR_TRY(check_key(shard.name));
  if (!is_utf8(shard.name)) return invalid_argument("the name of a shard is not UTF-8");
  if (Status status = check_extents(extents, shard.bytes); !status.is_ok()) {
    return invalid_argument("shard '" + std::string(shard.name) + "': " + status.message());
  }
  if (!names_.insert(std::string(shard.name)).second) {
    return invalid_argument("the shard '" + std::string(shard.name) + "' is given twice");
  }
  shards_.push_back({std::string(shard.name), std::string(shard.pin), shard.bytes, extents.size(),
                     shard.sha256, xxh3_64(std::as_bytes(extents))});
  extents_.insert(extents_.end(), extents.begin(), extents.end());
  return Status::ok();
}

Result<std::string> IndexBuilder::finish() const {
  if (shards_.empty()) return invalid_argument("an index needs at least one shard");
  std::string strings;
  std::string records;
  std::uint64_t first = 0;
  for (const Shard& shard : shards_) {
    IndexRecord record{};
    record.name_offset = static_cast<std::uint32_t>(strings.size());
    record.name_length = static_cast<std::uint32_t>(shard.name.size());
    strings += shard.name;
    record.pin_offset = static_cast<std::uint32_t>(strings.size());
    record.pin_length = static_cast<std::uint32_t>(shard.pin.size());
    strings += shard.pin;
    if (strings.size() > (std::uint64_t{1} << 31)) {
      return exhausted("the names of the shards take more than 2 GiB");
    }
    record.bytes = shard.bytes;
    record.samples = shard.samples;
    record.first_sample = first;
    record.extents_checksum = shard.extents_checksum;
    record.sha256 = shard.sha256;
    append_raw(records, record);
    first += shard.samples;
  }

  const ByteView parts[] = {as_bytes(meta_), as_bytes(strings), as_bytes(records),
                            std::as_bytes(std::span(extents_))};
  IndexHeader header{};
  header.magic = kIndexMagic;
  header.version = kIndexVersion;
  header.sections = kIndexSections;
  header.shards = shards_.size();
  header.samples = first;
  std::uint64_t at = sizeof header;
  for (std::uint32_t i = 0; i < kIndexSections; ++i) {
    IndexSectionEntry& entry = header.table[i];
    entry.kind = i + 1;
    entry.offset = at;
    entry.length = parts[i].size();
    entry.checksum =
        i + 1 == static_cast<std::uint32_t>(IndexSection::kExtents) ? 0 : xxh3_64(parts[i]);
    at = align_index(at + parts[i].size());
  }
  header.file_length = at;
  header.checksum = index_header_checksum(header);

  std::string file;
  file.reserve(at);
  append_raw(file, header);
  for (const ByteView part : parts) {
    file += as_text(part);
    file.resize(align_index(file.size()), '\0');
  }
  return file;
}

}  // namespace headrace::trust
