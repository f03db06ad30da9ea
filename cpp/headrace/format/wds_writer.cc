#include "headrace/format/wds_writer.h"

#include <algorithm>

#include "headrace/base/json.h"
#include "headrace/base/key.h"
#include "headrace/base/utf8.h"
#include "headrace/format/tar_scanner.h"

namespace headrace::format {
namespace {

// Two blocks of zeros end an archive.
constexpr std::uint64_t kEndBytes = 2 * kTarBlock;
// Shards are built in memory.
constexpr std::uint64_t kSizeLimitMax = std::uint64_t{1} << 36;

std::string numbered(std::uint64_t number, std::size_t digits) {
  std::string text = std::to_string(number);
  if (text.size() < digits) text.insert(0, digits - text.size(), '0');
  return text;
}

Result<FieldType> type_of(const std::string& encoding) {
  FieldType type;
  if (encoding == "bytes") return type;
  if (encoding == "str" || encoding == "json" || encoding == "int") {
    type.kind = encoding == "str"    ? FieldKind::kStr
                : encoding == "json" ? FieldKind::kJson
                                     : FieldKind::kScalar;
    if (encoding == "int") type.dtype = DType::kI64;
    return type;
  }
  if (encoding == "jpeg" || encoding == "png") {
    type.kind = FieldKind::kMedia;
    type.media = encoding == "png" ? MediaKind::kPng : MediaKind::kJpeg;
    return type;
  }
  return invalid_argument("the encoding '" + encoding.substr(0, 80) +
                          "' is not written to tar archives; bytes, str, int, json, jpeg and png "
                          "are (MDS has the others)");
}

// What is written must be what is read: the extension decides that.
Status check_column(const Column& column, const FieldType& type) {
  const std::string& name = column.name;
  const bool is_plain =
      !name.empty() && is_utf8(name) && name.front() != '.' && name.back() != '.' &&
      name.find('/') == name.npos && name.find('\0') == name.npos && name != kWdsKeyField &&
      std::none_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (!is_plain) {
    return invalid_argument("the column '" + name +
                            "' cannot be a file's extension: it takes "
                            "lower case without '/' and without a dot at either end");
  }
  const FieldType read = wds_field_type(name);
  if (column.encoding == "bytes" || read.kind == FieldKind::kBytes) return Status::ok();
  const bool is_text = read.kind == FieldKind::kStr && column.encoding == "int";
  if (read.kind != type.kind && !is_text) {
    return invalid_argument("the column '" + name + "' is read as " + read.to_string() +
                            " by its extension and cannot be written as " + column.encoding);
  }
  if (read.media != type.media) {
    return invalid_argument("the column '" + name + "' is read as " + read.to_string() +
                            " by its extension, and its values are " + type.to_string());
  }
  return Status::ok();
}

Status check_sample_key(std::string_view key) {
  HR_TRY(check_key(key));
  if (!is_utf8(key)) return invalid_argument("the key of a sample is not UTF-8");
  // Some extension, to ask how a reader would cut the name.
  const std::string name = std::string(key) + ".x";
  const WdsName cut = split_wds_name(name);
  if (!cut.is_field || cut.key != key) {
    return invalid_argument("the key '" + std::string(key.substr(0, 120)) +
                            "' has a dot in its base name or is of the form __x__, which readers "
                            "of WebDataset take for something else; rename it");
  }
  return Status::ok();
}

class WdsBuilder final : public DatasetBuilder {
 public:
  WdsBuilder(std::uint64_t size_limit, Schema schema)
      : size_limit_(size_limit), schema_(std::move(schema)) {}

  const Schema& schema() const override { return schema_; }

  Status add(std::string_view key, std::span<const FieldValue> values,
             std::vector<FinishedFile>& out) override {
    if (is_finished_) return invalid_argument("the data set has been finished");
    if (values.size() != schema_.fields.size()) {
      return invalid_argument("a sample has " + std::to_string(schema_.fields.size()) +
                              " values, and this one has " + std::to_string(values.size()));
    }
    const std::string name = key.empty() ? numbered(samples_, 9) : std::string(key);
    HR_TRY(check_sample_key(name));
    if (name == last_key_) {
      return invalid_argument("the key '" + name.substr(0, 120) +
                              "' is that of the sample before; the two would be read as one");
    }
    sample_.clear();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i].is_null) continue;
      if (Status status = append_file(name, schema_.fields[i], values[i]); !status.is_ok()) {
        return status.with_context("column '" + schema_.fields[i].name + "'");
      }
    }
    if (sample_.empty()) {
      return invalid_argument("the sample '" + name.substr(0, 120) + "' has no value at all");
    }
    if (!shard_.empty() && shard_.size() + sample_.size() + kEndBytes > size_limit_) flush(out);
    shard_ += sample_;
    last_key_ = name;
    ++samples_;
    return Status::ok();
  }

  Status finish(std::vector<FinishedFile>& out) override {
    if (is_finished_) return invalid_argument("the data set has been finished");
    if (samples_ == 0) {
      return invalid_argument("no samples were added, and a data set has at least one");
    }
    flush(out);
    is_finished_ = true;
    return Status::ok();
  }

 private:
  Status append_file(const std::string& key, const Field& field, const FieldValue& value) {
    std::string number;
    std::string_view body = as_text(value.bytes);
    switch (field.type.kind) {
      case FieldKind::kScalar:
        if (value.dtype != DType::kI64 || value.dimensions != 0 ||
            value.bytes.size() != sizeof(std::int64_t)) {
          return invalid_argument("takes one int64");
        }
        number = std::to_string(load_le<std::int64_t>(value.bytes.data()));
        body = number;
        break;
      case FieldKind::kJson: {
        const auto parsed = parse_json(body);
        if (!parsed.is_ok()) return invalid_argument("is " + parsed.status().message());
        break;
      }
      case FieldKind::kStr:
        if (!is_utf8(body)) return invalid_argument("is not UTF-8 text");
        break;
      default: break;
    }
    HR_TRY(append_tar_header(key + "." + field.name, body.size(), sample_));
    sample_ += body;
    sample_.resize(sample_.size() + (kTarBlock - body.size() % kTarBlock) % kTarBlock, '\0');
    return Status::ok();
  }

  void flush(std::vector<FinishedFile>& out) {
    shard_.resize(shard_.size() + kEndBytes, '\0');
    out.push_back({"shard-" + numbered(shards_++, 6) + ".tar",
                   std::make_shared<const std::string>(std::move(shard_))});
    shard_ = {};
  }

  const std::uint64_t size_limit_;
  const Schema schema_;
  std::string sample_;  // reused
  std::string shard_;   // members of the shard under way
  std::string last_key_;
  std::uint64_t samples_ = 0;
  std::uint64_t shards_ = 0;
  bool is_finished_ = false;
};

}  // namespace

Result<std::unique_ptr<DatasetBuilder>> make_wds_builder(WriterOptions options) {
  if (options.columns.empty()) return invalid_argument("a data set needs at least one column");
  if (options.size_limit == 0 || options.size_limit > kSizeLimitMax) {
    return invalid_argument("size_limit is " + std::to_string(options.size_limit) +
                            "; tar shards take 1 byte to 64 GiB");
  }
  if (!options.hashes.empty()) {
    return invalid_argument(
        "tar archives have no place for hashes; headrace.index records the "
        "SHA-256 of each shard anyway");
  }
  std::sort(options.columns.begin(), options.columns.end(),
            [](const Column& a, const Column& b) { return a.name < b.name; });
  Schema schema;
  for (const Column& column : options.columns) {
    auto type = type_of(column.encoding);
    if (!type.is_ok()) return type.status().with_context("column '" + column.name + "'");
    HR_TRY(check_column(column, *type));
    if (schema.find(column.name)) {
      return invalid_argument("the column '" + column.name + "' is given twice");
    }
    schema.fields.push_back({column.name, *type, column.encoding});
  }
  return std::unique_ptr<DatasetBuilder>(
      std::make_unique<WdsBuilder>(options.size_limit, std::move(schema)));
}

}  // namespace headrace::format
