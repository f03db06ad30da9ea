#include "headrace/format/mds_reader.h"

#include <limits>
#include <unordered_set>

#include "headrace/base/json.h"
#include "headrace/base/key.h"
#include "headrace/format/mds_encoding.h"

namespace headrace::format {
namespace {

// Offsets are u32, so no shard can be larger.
constexpr std::uint64_t kShardBytesMax = std::numeric_limits<std::uint32_t>::max();
// The count and one offset: what a shard of no samples begins with.
constexpr std::uint64_t kHeaderBytes = 8;

struct MdsShard {
  ShardInfo info;
  std::vector<std::string> names;
  std::vector<std::string> encodings;
};

std::string shard_label(std::size_t number, const std::string& name) {
  return "shard " + std::to_string(number) + " (" + name + ")";
}

class MdsLocator final : public ShardLocator {
 public:
  MdsLocator(std::uint32_t shard, std::vector<std::uint32_t> offsets)
      : shard_(shard), offsets_(std::move(offsets)) {}

  Status locate(std::uint64_t sample, FetchUnit& out) const override {
    if (sample >= offsets_.size() - 1) {
      return invalid_argument("shard " + std::to_string(shard_) + " has no sample " +
                              std::to_string(sample));
    }
    const std::uint64_t begin = offsets_[sample];
    const std::uint64_t length = offsets_[sample + 1] - begin;
    out.extents.assign(1, Extent{shard_, {begin, length}});
    out.codecs.clear();
    out.decoded_bytes = length;
    out.first_sample = sample;
    out.samples = 1;
    return Status::ok();
  }

 private:
  const std::uint32_t shard_;
  const std::vector<std::uint32_t> offsets_;  // samples + 1
};

class MdsReader final : public Reader {
 public:
  MdsReader(Schema schema, std::vector<MdsColumn> columns, std::vector<ShardInfo> shards)
      : schema_(std::move(schema)), columns_(std::move(columns)), shards_(std::move(shards)) {
    for (const MdsColumn& column : columns_) {
      lengths_bytes_ += column.size ? 0 : sizeof(std::uint32_t);
      sample_bytes_min_ += column.size ? *column.size : sizeof(std::uint32_t);
    }
  }

  std::string_view format_name() const override { return "mds"; }
  const Schema& schema() const override { return schema_; }
  const std::vector<ShardInfo>& shards() const override { return shards_; }

  std::optional<Extent> locator_extent(std::uint32_t shard) const override {
    HR_CHECK(shard < shards_.size(), "no such shard");
    return Extent{shard, {0, kHeaderBytes + 4 * shards_[shard].samples}};
  }

  Result<std::shared_ptr<const ShardLocator>> make_locator(std::uint32_t shard,
                                                           ByteView bytes) const override {
    HR_CHECK(shard < shards_.size(), "no such shard");
    const ShardInfo& info = shards_[shard];
    const std::uint64_t header = kHeaderBytes + 4 * info.samples;
    if (bytes.size() < header) {
      return bad_shard(shard, "ends at byte " + std::to_string(bytes.size()) +
                                  ", inside its table of " + std::to_string(header) + " bytes");
    }
    const auto count = load_le<std::uint32_t>(bytes.data());
    if (count != info.samples) {
      return bad_shard(shard, "holds " + std::to_string(count) + " samples and the index says " +
                                  std::to_string(info.samples));
    }
    std::vector<std::uint32_t> offsets(info.samples + 1);
    std::memcpy(offsets.data(), bytes.data() + 4, offsets.size() * 4);
    HR_TRY(check_offsets(shard, offsets));
    return std::shared_ptr<const ShardLocator>(
        std::make_shared<MdsLocator>(shard, std::move(offsets)));
  }

  Status view(ByteView unit, std::uint64_t index, std::span<FieldValue> values) const override {
    HR_CHECK(values.size() == columns_.size(), "one value for each field");
    if (index != 0) return invalid_argument("a unit of MDS is one sample");
    if (unit.size() < sample_bytes_min_) {
      return corrupt("the sample has " + std::to_string(unit.size()) +
                     " bytes and its columns take at least " + std::to_string(sample_bytes_min_));
    }
    const std::byte* lengths = unit.data();
    std::uint64_t at = lengths_bytes_;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const MdsColumn& column = columns_[i];
      std::uint32_t size = 0;
      if (column.size) {
        size = *column.size;
      } else {
        size = load_le<std::uint32_t>(lengths);
        lengths += sizeof size;
      }
      if (size > unit.size() - at) [[unlikely]] {
        return corrupt("field '" + schema_.fields[i].name + "' of " + std::to_string(size) +
                       " bytes passes the end of its sample");
      }
      if (Status status = mds_decode(column, unit.subspan(at, size), values[i]); !status.is_ok())
          [[unlikely]] {
        return status.with_context("field '" + schema_.fields[i].name + "'");
      }
      at += size;
    }
    if (at != unit.size()) [[unlikely]] {
      return corrupt(std::to_string(unit.size() - at) + " bytes follow the last field");
    }
    return Status::ok();
  }

 private:
  Status bad_shard(std::uint32_t shard, const std::string& what) const {
    return corrupt(shard_label(shard, shards_[shard].name) + " " + what +
                   "; the file is damaged or another than the index describes: fetch it again, or "
                   "write the data set again");
  }

  Status check_offsets(std::uint32_t shard, const std::vector<std::uint32_t>& offsets) const {
    const ShardInfo& info = shards_[shard];
    const std::uint64_t header = kHeaderBytes + 4 * info.samples;
    if (offsets.front() < header) {
      return bad_shard(shard, "places sample 0 at byte " + std::to_string(offsets.front()) +
                                  ", inside its own table");
    }
    if (offsets.back() != info.bytes) {
      return bad_shard(shard, "ends its last sample at byte " + std::to_string(offsets.back()) +
                                  " and the index says " + std::to_string(info.bytes) + " bytes");
    }
    // One pass without branches decides; a second one finds the place for the message.
    int is_bad = 0;
    const auto least = static_cast<std::uint32_t>(sample_bytes_min_);
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      is_bad |= static_cast<int>(offsets[i + 1] < offsets[i]) |
                static_cast<int>(offsets[i + 1] - offsets[i] < least);
    }
    if (is_bad == 0) return Status::ok();
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      if (offsets[i + 1] < offsets[i] || offsets[i + 1] - offsets[i] < least) {
        return bad_shard(shard, "places sample " + std::to_string(i) + " at bytes " +
                                    std::to_string(offsets[i]) + " to " +
                                    std::to_string(offsets[i + 1]) +
                                    ", which its columns do not fit");
      }
    }
    return internal_error("an offset table is both good and bad");
  }

  const Schema schema_;
  const std::vector<MdsColumn> columns_;
  const std::vector<ShardInfo> shards_;
  std::uint64_t lengths_bytes_ = 0;  // the lengths of the variable columns
  std::uint64_t sample_bytes_min_ = 0;
};

Result<std::uint64_t> whole(const Json& object, std::string_view name) {
  const Json* member = object.find(name);
  const auto value = member ? member->as_u64() : std::nullopt;
  if (!value) return corrupt("'" + std::string(name) + "' must be a whole number of at least 0");
  return *value;
}

Result<std::vector<std::string>> strings(const Json& object, std::string_view name) {
  const Json* member = object.find(name);
  const Json::Array* items = member ? member->as_array() : nullptr;
  std::vector<std::string> out;
  if (items != nullptr) {
    for (const Json& item : *items) {
      if (item.as_string() == nullptr) break;
      out.push_back(*item.as_string());
    }
  }
  if (items == nullptr || out.size() != items->size()) {
    return corrupt("'" + std::string(name) + "' must be an array of strings");
  }
  return out;
}

Status check_supported(const Json& entry) {
  HR_ASSIGN(const std::uint64_t version, whole(entry, "version"));
  if (version != 2) {
    return unimplemented("'version' is " + std::to_string(version) + ", and only 2 is known");
  }
  const Json* format = entry.find("format");
  if (format == nullptr || format->as_string() == nullptr) {
    return corrupt("'format' must be a string");
  }
  const std::string& name = *format->as_string();
  if (name == "json" || name == "csv" || name == "tsv" || name == "xsv") {
    return unimplemented("'format' is " + name +
                         ", and only mds shards are read; write the data "
                         "set again as MDS (headrace pack reads JSONL and CSV)");
  }
  if (name != "mds") return corrupt("'format' is '" + name.substr(0, 40) + "', not 'mds'");
  const Json* compression = entry.find("compression");
  if (compression != nullptr && !compression->is_null()) {
    const std::string* codec = compression->as_string();
    return unimplemented("'compression' is " + (codec ? codec->substr(0, 40) : "set") +
                         ", and compressed MDS shards are not read yet; write the data set again "
                         "with compression=None");
  }
  return Status::ok();
}

Status read_raw_data(const Json& entry, ShardInfo& info) {
  const Json* raw = entry.find("raw_data");
  if (raw == nullptr || raw->as_object() == nullptr) {
    return corrupt("'raw_data' must be an object");
  }
  const Json* name = raw->find("basename");
  if (name == nullptr || name->as_string() == nullptr) {
    return corrupt("'raw_data.basename' must be a string");
  }
  info.name = *name->as_string();
  if (Status status = check_key(info.name); !status.is_ok()) {
    return corrupt("'raw_data.basename': " + status.message());
  }
  auto bytes = whole(*raw, "bytes");
  if (!bytes.is_ok()) return corrupt("'raw_data.bytes' must be a whole number of at least 0");
  info.bytes = *bytes;
  if (info.bytes > kShardBytesMax) {
    return corrupt("'raw_data.bytes' is " + std::to_string(info.bytes) +
                   ", and offsets of 32 bits reach 4 GiB only");
  }
  const Json* hashes = raw->find("hashes");
  if (hashes == nullptr || hashes->is_null()) return Status::ok();
  if (hashes->as_object() == nullptr) return corrupt("'raw_data.hashes' must be an object");
  for (const JsonMember& hash : *hashes->as_object()) {
    const std::string* hex = hash.value.as_string();
    if (hex == nullptr || hex->size() > 128 ||
        hex->find_first_not_of("0123456789abcdef") != hex->npos) {
      return corrupt("'raw_data.hashes' must hold lower-case hexadecimal text");
    }
    info.hashes.push_back({hash.name, *hex});
  }
  return Status::ok();
}

Result<MdsShard> read_shard(const Json& entry) {
  if (entry.as_object() == nullptr) return corrupt("is no JSON object");
  HR_TRY(check_supported(entry));
  MdsShard shard;
  HR_TRY(read_raw_data(entry, shard.info));
  HR_ASSIGN(shard.info.samples, whole(entry, "samples"));
  // Samples are at least an offset each, which bounds what a locator will be asked to hold.
  if (shard.info.bytes < kHeaderBytes ||
      shard.info.samples > (shard.info.bytes - kHeaderBytes) / 4) {
    return corrupt("'samples' is " + std::to_string(shard.info.samples) + ", and a file of " +
                   std::to_string(shard.info.bytes) + " bytes cannot hold as many");
  }
  HR_ASSIGN(shard.names, strings(entry, "column_names"));
  HR_ASSIGN(shard.encodings, strings(entry, "column_encodings"));
  const Json* sizes = entry.find("column_sizes");
  if (sizes == nullptr || sizes->as_array() == nullptr ||
      sizes->as_array()->size() != shard.names.size() ||
      shard.encodings.size() != shard.names.size()) {
    return corrupt(
        "'column_names', 'column_encodings' and 'column_sizes' must be arrays of equal "
        "length");
  }
  return shard;
}

Status check_sizes(const Json& entry, const std::vector<MdsColumn>& columns) {
  const Json::Array& sizes = *entry.find("column_sizes")->as_array();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    // Upstream takes 0 for variable too.
    const bool is_variable = sizes[i].is_null() || sizes[i].as_u64() == 0;
    const bool is_right = columns[i].size ? sizes[i].as_u64() == *columns[i].size : is_variable;
    if (!is_right) {
      return corrupt("'column_sizes' entry " + std::to_string(i) +
                     " does not go with its encoding, of which a value takes " +
                     (columns[i].size ? std::to_string(*columns[i].size) + " bytes"
                                      : std::string("any number of bytes")));
    }
  }
  return Status::ok();
}

Status make_columns(const MdsShard& shard, Schema& schema, std::vector<MdsColumn>& columns) {
  if (shard.names.empty()) return corrupt("'column_names' is empty");
  std::unordered_set<std::string> seen;
  for (std::size_t i = 0; i < shard.names.size(); ++i) {
    if (shard.names[i].empty() || !seen.insert(shard.names[i]).second) {
      return corrupt("'column_names' holds an empty name or one name twice");
    }
    auto column = parse_mds_encoding(shard.encodings[i]);
    if (!column.is_ok()) return column.status().with_context("column '" + shard.names[i] + "'");
    schema.fields.push_back({shard.names[i], column->type, shard.encodings[i]});
    columns.push_back(*column);
  }
  return Status::ok();
}

// What read_mds_index gathers over the shards.
struct Gathered {
  Schema schema;
  std::vector<MdsColumn> columns;
  std::vector<ShardInfo> shards;
  std::vector<std::string> names;  // of the first shard, which all others must repeat
  std::vector<std::string> encodings;
  std::uint64_t samples = 0;
  std::unordered_set<std::string> files;
};

Status add_shard(const Json& entry, Gathered& all) {
  HR_ASSIGN(MdsShard shard, read_shard(entry));
  if (all.shards.empty()) {
    HR_TRY(make_columns(shard, all.schema, all.columns));
    all.names = shard.names;
    all.encodings = shard.encodings;
  } else if (shard.names != all.names || shard.encodings != all.encodings) {
    return corrupt("has other columns than shard 0; one data set has one schema");
  }
  HR_TRY(check_sizes(entry, all.columns));
  const auto samples = checked_add(all.samples, shard.info.samples);
  if (!samples) return corrupt("'samples' overflows the sum over the shards");
  all.samples = *samples;
  if (!all.files.insert(shard.info.name).second) {
    return corrupt("names the file '" + shard.info.name + "', as an earlier shard does");
  }
  all.shards.push_back(std::move(shard.info));
  return Status::ok();
}

class MdsFormat final : public Format {
 public:
  std::string_view name() const override { return "mds"; }
  std::string_view index_name() const override { return kMdsIndexName; }
  Result<LoadStep> load_index(const Fetched& have) const override {
    LoadStep step;
    const auto found = have.objects.find(kMdsIndexName);
    if (found == have.objects.end()) {
      step.needs.push_back({std::string(kMdsIndexName), 0, 0});
      return step;
    }
    HR_ASSIGN(step.reader, read_mds_index(*found->second));
    return step;
  }
};

}  // namespace

Result<std::shared_ptr<Reader>> read_mds_index(std::string_view text) {
  auto parsed = parse_json(text);
  if (!parsed.is_ok()) return parsed.status().with_context(kMdsIndexName);
  const Json& index = *parsed;
  const Json* shards = index.find("shards");
  const Json* version = index.find("version");
  if (shards == nullptr || shards->as_array() == nullptr || version == nullptr) {
    return corrupt("index.json is no MDS index: it needs 'version' and an array 'shards'");
  }
  if (version->as_u64() != 2) {
    return unimplemented("index.json: only 'version' 2 of MDS is known");
  }
  if (shards->as_array()->empty()) return invalid_argument("index.json lists no shards");
  if (shards->as_array()->size() > std::numeric_limits<std::uint32_t>::max()) {
    return corrupt("index.json lists more than 2^32 shards");
  }
  Gathered all;
  for (const Json& entry : *shards->as_array()) {
    if (Status status = add_shard(entry, all); !status.is_ok()) {
      return status.with_context("index.json: shard " + std::to_string(all.shards.size()));
    }
  }
  return std::shared_ptr<Reader>(std::make_shared<MdsReader>(
      std::move(all.schema), std::move(all.columns), std::move(all.shards)));
}

const Format& mds_format() {
  static const MdsFormat format;
  return format;
}

std::span<const Format* const> self_indexed_formats() {
  static const Format* const formats[] = {&mds_format()};
  return formats;
}

}  // namespace headrace::format
