#include "headrace/format/tar_reader.h"

#include "headrace/base/utf8.h"
#include "headrace/format/tar_scanner.h"

namespace headrace::format {
namespace {

class TarLocator final : public ShardLocator {
 public:
  TarLocator(std::uint32_t shard, std::span<const ByteRange> extents,
             std::shared_ptr<const void> owner)
      : shard_(shard), extents_(extents), owner_(std::move(owner)) {}

  Status locate(std::uint64_t sample, FetchUnit& out) const override {
    if (sample >= extents_.size()) {
      return invalid_argument("shard " + std::to_string(shard_) + " has no sample " +
                              std::to_string(sample));
    }
    const ByteRange& range = extents_[sample];
    out.extents.assign(1, Extent{shard_, range});
    out.codecs.clear();
    out.decoded_bytes = range.length;
    out.first_sample = sample;
    out.samples = 1;
    return Status::ok();
  }

 private:
  const std::uint32_t shard_;
  const std::span<const ByteRange> extents_;
  const std::shared_ptr<const void> owner_;
};

// Fields are called by the extension in lower case.
bool is_field(std::string_view extension, std::string_view field) {
  if (extension.size() != field.size()) return false;
  for (std::size_t i = 0; i < field.size(); ++i) {
    const char c = extension[i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) != field[i]) return false;
  }
  return true;
}

// The key as bytes that live as long as the unit, or in `value` itself when the archive keeps the
// name in two pieces.
void set_key(std::string_view key, ByteView unit, FieldValue& value) {
  value.is_null = false;
  const auto* begin = reinterpret_cast<const std::byte*>(key.data());
  if (begin >= unit.data() && begin + key.size() <= unit.data() + unit.size()) {
    value.bytes = as_bytes(key);
    return;
  }
  value.held = std::make_shared<const std::string>(key);
  value.bytes = as_bytes(*value.held);
}

class TarReader final : public Reader {
 public:
  explicit TarReader(TarTables tables) : tables_(std::move(tables)) {}

  std::string_view format_name() const override { return "wds"; }
  const Schema& schema() const override { return tables_.schema; }
  const std::vector<ShardInfo>& shards() const override { return tables_.shards; }
  std::optional<Extent> locator_extent(std::uint32_t) const override { return std::nullopt; }

  Result<std::shared_ptr<const ShardLocator>> make_locator(std::uint32_t shard,
                                                           ByteView) const override {
    HR_CHECK(shard < tables_.shards.size(), "no such shard");
    const ShardInfo& info = tables_.shards[shard];
    HR_ASSIGN(const std::span<const ByteRange> extents, tables_.extents(shard));
    const std::string label = "shard " + std::to_string(shard) + " (" + info.name + ")";
    if (extents.size() != info.samples) {
      return corrupt(label + " has " + std::to_string(extents.size()) +
                     " samples in its table and should have " + std::to_string(info.samples));
    }
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const ByteRange& range = extents[i];
      const bool is_blocks = (range.offset | range.length) % kTarBlock == 0 && range.length > 0;
      if (!is_blocks || range.offset < end || range.offset > info.bytes ||
          range.length > info.bytes - range.offset) {
        return corrupt(label + ": the index places sample " + std::to_string(i) + " at byte " +
                       std::to_string(range.offset) + " for " + std::to_string(range.length) +
                       " bytes, where no sample can be; make it again with `headrace index`");
      }
      end = range.end();
    }
    return std::shared_ptr<const ShardLocator>(
        std::make_shared<TarLocator>(shard, extents, tables_.owner));
  }

  Status view(ByteView unit, std::uint64_t index, std::span<FieldValue> values) const override {
    HR_CHECK(values.size() == tables_.schema.fields.size(), "one value for each field");
    if (index != 0) return invalid_argument("a unit of a tar archive is one sample");
    for (FieldValue& value : values) value = FieldValue{};
    TarExtensions extensions;
    std::uint64_t at = 0;
    while (at < unit.size()) {
      if (unit.size() - at < kTarBlock) return corrupt("the sample ends inside a header");
      HR_ASSIGN(const TarHeader header, parse_tar_header(unit.subspan(at, kTarBlock)));
      at += kTarBlock;
      if (TarExtensions::is_extension(header.type)) {
        const ByteView body = unit.subspan(at);
        if (header.size > std::min<std::uint64_t>(body.size(), kTarExtensionBytesMax)) {
          return corrupt("an extension header leaves the sample");
        }
        HR_TRY(extensions.apply(header.type, as_text(body.first(header.size))));
        at += std::min<std::uint64_t>(*pad_to_block(header.size), body.size());
        continue;
      }
      HR_ASSIGN(const TarMember member, extensions.finish(header));
      if (member.size > unit.size() - at) return corrupt("a file leaves its sample");
      HR_TRY(take(member, unit, at, values));
      at += std::min<std::uint64_t>(*pad_to_block(member.size), unit.size() - at);
    }
    return check_complete(values);
  }

 private:
  Status take(const TarMember& member, ByteView unit, std::uint64_t at,
              std::span<FieldValue> values) const {
    if (!member.is_file) return Status::ok();
    const WdsName name = split_wds_name(member.name);
    if (!name.is_field) return Status::ok();
    if (values[0].is_null) {
      set_key(name.key, unit, values[0]);
    } else if (as_text(values[0].bytes) != name.key) {
      return corrupt("files of two samples, '" + std::string(as_text(values[0].bytes)) + "' and '" +
                     std::string(name.key) + "', lie where the index has one");
    }
    for (std::size_t i = 1; i < values.size(); ++i) {
      const Field& field = tables_.schema.fields[i];
      if (!is_field(name.extension, field.name)) continue;
      if (!values[i].is_null) return corrupt("the field '" + field.name + "' occurs twice");
      values[i].is_null = false;
      values[i].bytes = unit.subspan(at, member.size);
      const bool is_text =
          field.type.kind == FieldKind::kStr || field.type.kind == FieldKind::kJson;
      if (is_text && !is_utf8(as_text(values[i].bytes))) {
        return corrupt("field '" + field.name + "': is not UTF-8 text");
      }
      return Status::ok();
    }
    return corrupt("the field '" + std::string(name.extension) + "' of '" + std::string(name.key) +
                   "' is not in the index; make it again with `headrace index`");
  }

  Status check_complete(std::span<const FieldValue> values) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Field& field = tables_.schema.fields[i];
      if (values[i].is_null && !field.type.nullable) {
        return corrupt("the sample has no field '" + field.name + "', which the index promises");
      }
    }
    return Status::ok();
  }

  const TarTables tables_;
};

}  // namespace

Result<std::shared_ptr<Reader>> make_tar_reader(TarTables tables) {
  const std::vector<Field>& fields = tables.schema.fields;
  if (fields.empty() || fields[0].name != kWdsKeyField || fields[0].type.kind != FieldKind::kStr ||
      fields[0].type.nullable) {
    return corrupt("the schema of tar archives begins with the text '__key__'");
  }
  for (const Field& field : fields) {
    const bool is_stored_whole = field.type.kind != FieldKind::kScalar &&
                                 field.type.kind != FieldKind::kArray &&
                                 field.type.kind != FieldKind::kList;
    if (!is_stored_whole) {
      return corrupt("the field '" + field.name + "' is " + field.type.to_string() +
                     ", which a file in a tar archive is not");
    }
  }
  return std::shared_ptr<Reader>(std::make_shared<TarReader>(std::move(tables)));
}

}  // namespace headrace::format
