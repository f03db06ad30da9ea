#include "headrace/trust/index.h"

#include <limits>
#include <unordered_set>

#include "headrace/base/key.h"
#include "headrace/base/utf8.h"
#include "headrace/trust/hasher.h"
#include "headrace/trust/index_layout.h"

namespace headrace::trust {
namespace {

struct Sections {
  IndexHeader header{};
  std::array<ByteView, kIndexSections> bytes;

  ByteView of(IndexSection section) const { return bytes[static_cast<std::size_t>(section) - 1]; }
};

Status check_header(const IndexHeader& header, std::uint64_t size) {
  if (header.magic != kIndexMagic) return corrupt("is no Headrace index: its first bytes differ");
  if (header.version != kIndexVersion) {
    return unimplemented("has version " + std::to_string(header.version) + " and this library " +
                         "reads version " + std::to_string(kIndexVersion) +
                         "; make it again with `headrace index`");
  }
  if (header.file_length != size) {
    return corrupt("has " + std::to_string(size) + " bytes and says " +
                   std::to_string(header.file_length) + "; it is truncated or was written over");
  }
  if (header.sections != kIndexSections || header.checksum != index_header_checksum(header)) {
    return corrupt("has a damaged header (bytes 0 to " + std::to_string(sizeof header) + ")");
  }
  return Status::ok();
}

// Cuts the file into its sections, which must lie in order and without gaps.
Result<Sections> split(ByteView bytes) {
  Sections out;
  if (bytes.size() < sizeof out.header) return corrupt("is shorter than its header");
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kIndexAlignment != 0) {
    return invalid_argument("lies at an address that is no multiple of 8");
  }
  std::memcpy(&out.header, bytes.data(), sizeof out.header);
  HR_TRY(check_header(out.header, bytes.size()));
  std::uint64_t at = sizeof out.header;
  for (std::size_t i = 0; i < kIndexSections; ++i) {
    const IndexSectionEntry& entry = out.header.table[i];
    const std::string where = "section " + std::to_string(i + 1);
    if (entry.kind != i + 1 || entry.reserved != 0 || entry.offset != at ||
        entry.length > bytes.size() - at || align_index(at + entry.length) > bytes.size()) {
      return corrupt(where + " is not where it must be");
    }
    out.bytes[i] = bytes.subspan(at, entry.length);
    for (std::uint64_t p = at + entry.length; p < align_index(at + entry.length); ++p) {
      if (bytes[p] != std::byte{0}) return corrupt(where + " is padded with other than zeros");
    }
    const bool is_lazy = entry.kind == static_cast<std::uint32_t>(IndexSection::kExtents);
    if (entry.checksum != (is_lazy ? 0 : xxh3_64(out.bytes[i]))) {
      return corrupt(where + " (bytes " + std::to_string(at) + " to " +
                     std::to_string(at + entry.length) + ") does not match its checksum");
    }
    at = align_index(at + entry.length);
  }
  if (at != bytes.size()) return corrupt("bytes follow the last section");
  return out;
}

Result<std::string_view> text_of(ByteView strings, std::uint32_t offset, std::uint32_t length) {
  if (offset > strings.size() || length > strings.size() - offset) {
    return corrupt("a text lies outside the section of texts");
  }
  return as_text(strings.subspan(offset, length));
}

Result<std::string> meta_string(const Json& meta, std::string_view name) {
  const Json* member = meta.find(name);
  if (member == nullptr || member->as_string() == nullptr) {
    return corrupt("its description has no text '" + std::string(name) + "'");
  }
  return *member->as_string();
}

// One record; `first` is the sum of the samples before it.
Result<IndexShard> read_record(const IndexRecord& record, ByteView strings, std::uint64_t first) {
  IndexShard shard;
  HR_ASSIGN(shard.name, text_of(strings, record.name_offset, record.name_length));
  HR_ASSIGN(shard.pin, text_of(strings, record.pin_offset, record.pin_length));
  if (Status status = check_key(shard.name); !status.is_ok()) return corrupt(status.message());
  if (!is_utf8(shard.name)) return corrupt("its name is not UTF-8");
  if (record.first_sample != first) return corrupt("its first sample is not the one that is due");
  if (record.samples > record.bytes) return corrupt("it has more samples than bytes");
  shard.bytes = record.bytes;
  shard.samples = record.samples;
  shard.first_sample = record.first_sample;
  shard.sha256 = record.sha256;
  return shard;
}

}  // namespace

std::uint64_t index_header_checksum(IndexHeader header) {
  header.checksum = 0;
  return xxh3_64(std::as_bytes(std::span(&header, 1)));
}

Status check_extents(std::span<const ByteRange> extents, std::uint64_t bytes) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const ByteRange& range = extents[i];
    if (range.offset < end || range.offset > bytes || range.length == 0 ||
        range.length > bytes - range.offset) {
      return corrupt("sample " + std::to_string(i) + " lies at byte " +
                     std::to_string(range.offset) + " for " + std::to_string(range.length) +
                     " bytes, which leaves the shard or overlaps the sample before");
    }
    end = range.end();
  }
  return Status::ok();
}

Result<std::shared_ptr<const IndexFile>> IndexFile::parse(std::shared_ptr<const void> owner,
                                                          ByteView bytes) {
  auto split_file = split(bytes);
  if (!split_file.is_ok()) return split_file.status().with_context(kIndexName);
  const Sections& sections = *split_file;
  const ByteView records = sections.of(IndexSection::kShards);
  const ByteView strings = sections.of(IndexSection::kStrings);
  const ByteView extents = sections.of(IndexSection::kExtents);
  const std::uint64_t count = records.size() / sizeof(IndexRecord);
  if (records.size() % sizeof(IndexRecord) != 0 || count != sections.header.shards || count == 0 ||
      count > std::numeric_limits<std::uint32_t>::max()) {
    return corrupt("headrace.index: the table of shards does not hold what the header says");
  }
  if (extents.size() % sizeof(ByteRange) != 0 ||
      extents.size() / sizeof(ByteRange) != sections.header.samples) {
    return corrupt("headrace.index: the table of samples does not hold what the header says");
  }

  std::shared_ptr<IndexFile> index(new IndexFile());
  HR_ASSIGN(const Json meta, parse_json(as_text(sections.of(IndexSection::kMeta))));
  HR_ASSIGN(index->format_, meta_string(meta, "format"));
  HR_ASSIGN(index->library_, meta_string(meta, "library"));
  if (meta.find("schema") == nullptr) return corrupt("headrace.index: it has no schema");
  index->schema_ = *meta.find("schema");

  std::unordered_set<std::string_view> names;
  names.reserve(count);
  index->shards_.reserve(count);
  index->extents_checksums_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    IndexRecord record;
    std::memcpy(&record, records.data() + i * sizeof record, sizeof record);
    auto shard = read_record(record, strings, index->samples_);
    const std::string where = "headrace.index: shard " + std::to_string(i);
    if (!shard.is_ok()) return shard.status().with_context(where);
    if (!names.insert(shard->name).second) return corrupt(where + " has the name of another");
    const auto samples = checked_add(index->samples_, record.samples);
    if (!samples || *samples > sections.header.samples) {
      return corrupt(where + " has more samples than the table holds");
    }
    index->samples_ = *samples;
    index->shards_.push_back(*shard);
    index->extents_checksums_.push_back(record.extents_checksum);
  }
  if (index->samples_ != sections.header.samples) {
    return corrupt("headrace.index: the shards have fewer samples than the table holds");
  }
  index->extents_ = {reinterpret_cast<const ByteRange*>(extents.data()),
                     extents.size() / sizeof(ByteRange)};
  index->owner_ = std::move(owner);
  return std::shared_ptr<const IndexFile>(std::move(index));
}

Result<std::span<const ByteRange>> IndexFile::extents(std::uint32_t number) const {
  if (number >= shards_.size()) {
    return invalid_argument("headrace.index: there is no shard " + std::to_string(number));
  }
  const IndexShard& info = shards_[number];
  const std::string_view name = info.name;
  const auto part = extents_.subspan(info.first_sample, info.samples);
  const auto context = [&] {
    return "headrace.index: shard " + std::to_string(number) + " (" + std::string(name) + ")";
  };
  if (xxh3_64(std::as_bytes(part)) != extents_checksums_[number]) {
    return corrupt(context() + ": its table of samples does not match its checksum");
  }
  if (Status status = check_extents(part, info.bytes); !status.is_ok()) {
    return status.with_context(context());
  }
  return part;
}

}  // namespace headrace::trust
