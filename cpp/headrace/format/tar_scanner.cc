#include "headrace/format/tar_scanner.h"

#include <algorithm>

#include "headrace/format/schema_json.h"

namespace headrace::format {
namespace {

// More files than this in one sample come from keys that are all alike.
constexpr std::size_t kSampleFieldsMax = 1024;

}  // namespace

// The archive is a chain of blocks: header, then the member's bytes, padded. Bytes are passed over
// without being kept, except headers and extension bodies that a piece cuts in two.
Status TarScanner::feed(ByteView piece, std::vector<TarSample>& out) {
  while (!piece.empty()) {
    if (state_ == State::kSkip) {
      const std::uint64_t step = std::min<std::uint64_t>(skip_, piece.size());
      skip_ -= step;
      position_ += step;
      piece = piece.subspan(step);
      if (skip_ == 0) state_ = State::kHeader;
      continue;
    }
    if (state_ == State::kEnd) {
      const auto stray =
          std::find_if(piece.begin(), piece.end(), [](std::byte b) { return b != std::byte{0}; });
      position_ += static_cast<std::uint64_t>(stray - piece.begin());
      if (stray == piece.end()) return Status::ok();
      header_at_ = position_;
      return fail(corrupt("bytes follow the end of the archive; if two archives were put together "
                          "with cat, join them with `tar --concatenate`"),
                  "");
    }
    const std::uint64_t wanted =
        state_ == State::kHeader ? kTarBlock : *pad_to_block(extension_bytes_);
    const std::uint64_t step = std::min<std::uint64_t>(wanted - buffer_.size(), piece.size());
    const ByteView part = piece.first(step);
    piece = piece.subspan(step);
    if (state_ == State::kHeader && buffer_.empty()) header_at_ = position_;
    position_ += step;
    if (state_ == State::kHeader && step == kTarBlock) {
      HR_TRY(take_header(part, out));
      continue;
    }
    buffer_ += as_text(part);
    if (buffer_.size() < wanted) return Status::ok();
    if (state_ == State::kHeader) {
      const std::string block = std::move(buffer_);
      buffer_.clear();
      HR_TRY(take_header(as_bytes(block), out));
    } else {
      HR_TRY(take_extension());
      buffer_.clear();
    }
  }
  return Status::ok();
}

Status TarScanner::finish(std::vector<TarSample>& out) {
  if (state_ != State::kEnd) {
    header_at_ = position_;
    return fail(corrupt("the archive is truncated here: its end-of-archive blocks are missing"),
                sample_.key);
  }
  if (!sample_.fields.empty()) out.push_back(std::move(sample_));
  sample_ = {};
  return Status::ok();
}

Status TarScanner::take_header(ByteView block, std::vector<TarSample>& out) {
  if (is_zero_block(block)) {
    if (extensions_.is_pending()) {
      return fail(corrupt("an extension header is followed by no member"), "");
    }
    state_ = State::kEnd;
    return Status::ok();
  }
  auto header = parse_tar_header(block);
  if (!header.is_ok()) return fail(header.status(), "");
  if (!extensions_.is_pending()) entry_begin_ = header_at_;
  if (TarExtensions::is_extension(header->type)) {
    if (header->size > kTarExtensionBytesMax) {
      return fail(corrupt("an extension header of " + std::to_string(header->size) +
                          " bytes; at most 1 MiB is read"),
                  header->name);
    }
    extension_type_ = header->type;
    extension_bytes_ = header->size;
    state_ = State::kExtension;
    if (extension_bytes_ == 0) return take_extension();
    return Status::ok();
  }
  auto member = extensions_.finish(*header);
  if (!member.is_ok()) return fail(member.status(), header->name);
  return take_member(*member, out);
}

Status TarScanner::take_extension() {
  const std::string_view body = std::string_view(buffer_).substr(0, extension_bytes_);
  if (Status status = extensions_.apply(extension_type_, body); !status.is_ok()) {
    return fail(status, "");
  }
  state_ = State::kHeader;
  return Status::ok();
}

Status TarScanner::take_member(const TarMember& member, std::vector<TarSample>& out) {
  const auto padded = pad_to_block(member.size);
  const auto end = padded ? checked_add(position_, *padded) : std::nullopt;
  if (!end) return fail(corrupt("its size leaves 64 bits"), member.name);
  skip_ = *padded;
  state_ = skip_ > 0 ? State::kSkip : State::kHeader;
  if (!member.is_file) return Status::ok();
  const WdsName name = split_wds_name(member.name);
  if (!name.is_field) return Status::ok();

  if (sample_.fields.empty() || sample_.key != name.key) {
    if (!sample_.fields.empty()) out.push_back(std::move(sample_));
    sample_ = {};
    sample_.key = std::string(name.key);
    sample_.begin = entry_begin_;
  }
  TarField field{std::string(name.extension), position_, member.size};
  std::transform(field.extension.begin(), field.extension.end(), field.extension.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const TarField& other : sample_.fields) {
    if (other.extension == field.extension) {
      return fail(invalid_argument("the sample '" + sample_.key + "' has the field '" +
                                   field.extension + "' twice; WebDataset refuses it too"),
                  member.name);
    }
  }
  if (sample_.fields.size() == kSampleFieldsMax) {
    return fail(invalid_argument("the sample '" + sample_.key + "' has more than " +
                                 std::to_string(kSampleFieldsMax) +
                                 " fields; do all file names "
                                 "begin alike up to their first dot?"),
                member.name);
  }
  sample_.fields.push_back(std::move(field));
  sample_.end = *end;
  return Status::ok();
}

Status TarScanner::fail(const Status& status, std::string_view member) const {
  std::string where = archive_ + " at byte " + std::to_string(header_at_);
  if (!member.empty()) {
    where += ", member '";
    // Names come from the archive; messages stay printable and short.
    for (const char c : member.substr(0, 120)) {
      const bool is_plain = static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
      where.push_back(is_plain ? c : '?');
    }
    where += "'";
  }
  return status.with_context(where);
}

FieldType wds_field_type(std::string_view extension) {
  const std::size_t dot = extension.rfind('.');
  const std::string_view last = dot == extension.npos ? extension : extension.substr(dot + 1);
  FieldType type;
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), last) != names.end();
  };
  if (is_one_of({"jpg", "jpeg"})) {
    type.kind = FieldKind::kMedia;
    type.media = MediaKind::kJpeg;
  } else if (last == "png") {
    type.kind = FieldKind::kMedia;
    type.media = MediaKind::kPng;
  } else if (is_one_of({"json", "jsn"})) {
    type.kind = FieldKind::kJson;
  } else if (is_one_of({"txt", "text", "transcript", "cls", "cls2", "index", "inx", "id"})) {
    type.kind = FieldKind::kStr;
  }
  return type;
}

void WdsSchemaBuilder::add(const TarSample& sample) {
  ++samples_;
  for (const TarField& field : sample.fields) {
    // Past the limit only what is known is counted: memory stays bounded and finish() refuses.
    const auto found = counts_.find(field.extension);
    if (found != counts_.end()) {
      ++found->second;
    } else if (counts_.size() <= kFieldsMax) {
      counts_.emplace(field.extension, 1);
    }
  }
}

void WdsSchemaBuilder::merge(const WdsSchemaBuilder& other) {
  samples_ += other.samples_;
  for (const auto& [extension, count] : other.counts_) counts_[extension] += count;
}

Result<Schema> WdsSchemaBuilder::finish() const {
  if (counts_.size() >= kFieldsMax) {
    return invalid_argument("the archives hold more than " + std::to_string(kFieldsMax) +
                            " different extensions, '" + counts_.begin()->first +
                            "' among them; a dot inside a file's name begins its extension, so "
                            "rename the files");
  }
  Schema schema;
  FieldType key;
  key.kind = FieldKind::kStr;
  schema.fields.push_back({std::string(kWdsKeyField), key, ""});
  for (const auto& [extension, count] : counts_) {
    FieldType type = wds_field_type(extension);
    type.nullable = count < samples_;
    schema.fields.push_back({extension, type, extension});
  }
  return schema;
}

}  // namespace headrace::format
