#include "headrace/format/mds_writer.h"

#include <algorithm>
#include <limits>
#include <set>

#include "headrace/base/json.h"
#include "headrace/base/utf8.h"
#include "headrace/format/mds_encoding.h"

namespace headrace::format {
namespace {

constexpr std::uint64_t kShardBytesMax = std::numeric_limits<std::uint32_t>::max();

std::string shard_name(std::size_t number) {
  std::string digits = std::to_string(number);
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  return "shard." + digits + ".mds";
}

Json string_list(const std::vector<std::string>& values) {
  Json list = Json::array();
  for (const std::string& value : values) list.push_back(Json::string(value));
  return list;
}

// A shard is a header (count, offsets, configuration as JSON) and the samples. Its size, as far as
// samples have been added, is kept in `running_`; a sample that would carry it over the limit ends
// the shard first. A shard is never written empty.
class MdsBuilder final : public DatasetBuilder {
 public:
  MdsBuilder(WriterOptions options, Schema schema, std::vector<MdsColumn> columns)
      : options_(std::move(options)), schema_(std::move(schema)), columns_(std::move(columns)) {
    config_ = dump_json(config());
    running_ = 8 + config_.size();
    for (const MdsColumn& column : columns_) variable_ += column.size ? 0 : 1;
  }

  const Schema& schema() const override { return schema_; }

  Status add(std::string_view, std::span<const FieldValue> values,
             std::vector<FinishedFile>& out) override {
    if (is_finished_) return invalid_argument("the data set has been finished");
    if (values.size() != columns_.size()) {
      return invalid_argument("a sample has " + std::to_string(columns_.size()) +
                              " values, and this one has " + std::to_string(values.size()));
    }
    HR_TRY(encode(values));
    const std::uint64_t taken = sample_.size() + sizeof(std::uint32_t);
    if (!ends_.empty() && running_ + taken > options_.size_limit) HR_TRY(flush(out));
    if (running_ + taken > kShardBytesMax) {
      return invalid_argument("the sample has " + std::to_string(sample_.size()) +
                              " bytes, and an MDS shard cannot exceed 4 GiB");
    }
    running_ += taken;
    body_ += sample_;
    ends_.push_back(static_cast<std::uint32_t>(body_.size()));
    return Status::ok();
  }

  Status finish(std::vector<FinishedFile>& out) override {
    if (is_finished_) return invalid_argument("the data set has been finished");
    if (ends_.empty() && shards_.as_array()->empty()) {
      return invalid_argument("no samples were added, and a data set has at least one");
    }
    if (!ends_.empty()) HR_TRY(flush(out));
    Json index = Json::object();
    index.set("shards", std::move(shards_));
    index.set("version", Json::number(2));
    out.push_back({"index.json", std::make_shared<const std::string>(dump_json(index))});
    is_finished_ = true;
    return Status::ok();
  }

 private:
  // What each shard repeats and the index holds for each shard as well.
  Json config() const {
    Json sizes = Json::array();
    Json names = Json::array();
    Json encodings = Json::array();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      names.push_back(Json::string(schema_.fields[i].name));
      encodings.push_back(Json::string(schema_.fields[i].encoding));
      sizes.push_back(columns_[i].size ? Json::number(*columns_[i].size) : Json());
    }
    Json out = Json::object();
    out.set("version", Json::number(2));
    out.set("format", Json::string("mds"));
    out.set("compression", Json());
    out.set("hashes", string_list(options_.hashes));
    out.set("size_limit", Json::number(options_.size_limit));
    out.set("column_names", std::move(names));
    out.set("column_encodings", std::move(encodings));
    out.set("column_sizes", std::move(sizes));
    return out;
  }

  // Lengths of the variable columns, then all values, into `sample_`.
  Status encode(std::span<const FieldValue> values) {
    sample_.assign(variable_ * sizeof(std::uint32_t), '\0');
    std::size_t length_at = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::size_t before = sample_.size();
      if (Status status = mds_encode(columns_[i], values[i], sample_); !status.is_ok()) {
        return status.with_context("column '" + schema_.fields[i].name + "'");
      }
      if (columns_[i].size) continue;
      const std::uint64_t length = sample_.size() - before;
      if (length > kShardBytesMax) {
        return invalid_argument("column '" + schema_.fields[i].name + "' has a value of " +
                                std::to_string(length) + " bytes; MDS ends at 4 GiB");
      }
      store_le(reinterpret_cast<std::byte*>(sample_.data() + length_at),
               static_cast<std::uint32_t>(length));
      length_at += sizeof(std::uint32_t);
    }
    return Status::ok();
  }

  Status flush(std::vector<FinishedFile>& out) {
    const std::uint64_t first = 4 + 4 * (ends_.size() + 1) + config_.size();
    std::string file;
    file.reserve(first + body_.size());
    append_le(file, static_cast<std::uint32_t>(ends_.size()));
    append_le(file, static_cast<std::uint32_t>(first));
    for (const std::uint32_t end : ends_) append_le(file, static_cast<std::uint32_t>(first + end));
    file += config_;
    file += body_;
    HR_CHECK(file.size() == running_, "the size of an MDS shard was foretold wrongly");

    Json hashes = Json::object();
    for (const std::string& algorithm : options_.hashes) {
      HR_ASSIGN(std::string hex, options_.hash(algorithm, as_bytes(file)));
      hashes.set(algorithm, Json::string(std::move(hex)));
    }
    const std::size_t number = shards_.as_array()->size();
    Json raw = Json::object();
    raw.set("basename", Json::string(shard_name(number)));
    raw.set("bytes", Json::number(file.size()));
    raw.set("hashes", std::move(hashes));
    Json entry = config();
    entry.set("samples", Json::number(ends_.size()));
    entry.set("raw_data", std::move(raw));
    entry.set("zip_data", Json());
    shards_.push_back(std::move(entry));

    out.push_back({shard_name(number), std::make_shared<const std::string>(std::move(file))});
    body_.clear();
    ends_.clear();
    running_ = 8 + config_.size();
    return Status::ok();
  }

  const WriterOptions options_;
  const Schema schema_;
  const std::vector<MdsColumn> columns_;
  std::string config_;
  std::size_t variable_ = 0;
  std::uint64_t running_ = 0;        // size of the shard under way, were it to end now
  std::string sample_;               // reused
  std::string body_;                 // samples of the shard under way, back to back
  std::vector<std::uint32_t> ends_;  // where each ends in `body_`
  Json shards_ = Json::array();
  bool is_finished_ = false;
};

Status check_hashes(WriterOptions& options) {
  std::sort(options.hashes.begin(), options.hashes.end());
  options.hashes.erase(std::unique(options.hashes.begin(), options.hashes.end()),
                       options.hashes.end());
  if (options.hashes.empty()) return Status::ok();
  if (!options.hash) return invalid_argument("hashes are asked for and no function computes them");
  for (const std::string& algorithm : options.hashes) {
    HR_TRY(options.hash(algorithm, {}).status());
  }
  return Status::ok();
}

}  // namespace

Result<std::unique_ptr<DatasetBuilder>> make_mds_builder(WriterOptions options) {
  if (options.columns.empty()) return invalid_argument("a data set needs at least one column");
  if (options.size_limit == 0 || options.size_limit > kShardBytesMax) {
    return invalid_argument("size_limit is " + std::to_string(options.size_limit) +
                            "; MDS shards take 1 byte to 4 GiB - 1");
  }
  HR_TRY(check_hashes(options));
  std::sort(options.columns.begin(), options.columns.end(),
            [](const Column& a, const Column& b) { return a.name < b.name; });
  Schema schema;
  std::vector<MdsColumn> columns;
  for (const Column& column : options.columns) {
    if (column.name.empty() || !is_utf8(column.name)) {
      return invalid_argument("a column needs a name in UTF-8");
    }
    if (schema.find(column.name)) {
      return invalid_argument("the column '" + column.name + "' is given twice");
    }
    auto parsed = parse_mds_encoding(column.encoding);
    if (!parsed.is_ok()) {
      return invalid_argument("column '" + column.name + "': " + parsed.status().message());
    }
    schema.fields.push_back({column.name, parsed->type, column.encoding});
    columns.push_back(*parsed);
  }
  return std::unique_ptr<DatasetBuilder>(
      std::make_unique<MdsBuilder>(std::move(options), std::move(schema), std::move(columns)));
}

}  // namespace headrace::format
