#include "headrace/loader/verify.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "headrace/trust/hasher.h"

namespace headrace::loader {
namespace {

// Checks one shard while its bytes pass by. `buffer_` holds what a unit that is not complete yet
// needs, from byte `buffer_at_` of the shard on.
class ShardCheck final : public ObjectVisitor {
 public:
  ShardCheck(const format::Reader& reader, std::uint32_t shard, std::string object,
             std::size_t problems_max)
      : reader_(reader),
        info_(reader.shards()[shard]),
        shard_(shard),
        object_(std::move(object)),
        problems_max_(problems_max),
        values_(reader.schema().fields.size()) {}

  Status begin(const store::ObjectInfo& info) override {
    if (info.size != info_.bytes) {
      const std::string what = "has " + std::to_string(info.size) + " bytes and the index says " +
                               std::to_string(info_.bytes);
      add_problem(what);
      return corrupt(what);
    }
    for (const format::NamedHash& hash : info_.hashes) {
      auto hasher = trust::Hasher::make(hash.algorithm);
      if (hasher.is_ok()) {
        hashers_.push_back(std::move(*hasher));
      } else {
        hashers_.push_back(nullptr);
        add_problem("cannot be checked: " + hasher.status().message());
      }
    }
    if (!reader_.locator_extent(shard_)) set_locator(reader_.make_locator(shard_, {}));
    return Status::ok();
  }

  Status take(ByteView part) override {
    for (const auto& hasher : hashers_) {
      if (hasher) hasher->update(part);
    }
    if (is_lost_ || next_ == info_.samples) return Status::ok();
    buffer_ += as_text(part);
    if (!locator_) {
      const ByteRange table = reader_.locator_extent(shard_)->range;
      if (table.end() > buffer_.size()) return Status::ok();
      set_locator(
          reader_.make_locator(shard_, as_bytes(buffer_).subspan(table.offset, table.length)));
    }
    check_units();
    return Status::ok();
  }

  Status end() override {
    for (std::size_t i = 0; i < hashers_.size(); ++i) {
      if (!hashers_[i]) continue;
      const std::string hex = hashers_[i]->finish_hex();
      if (hex != info_.hashes[i].hex) {
        add_problem("its " + info_.hashes[i].algorithm + " is " + hex + " and the index says " +
                    info_.hashes[i].hex + ": these are other bytes; fetch the shard again");
      }
    }
    return Status::ok();
  }

  std::uint64_t checked() const { return checked_; }
  std::vector<Problem>& problems() { return problems_; }
  std::uint64_t left_out() const { return left_out_; }
  void add_problem(std::string what, std::optional<std::uint64_t> sample = {},
                   std::optional<std::uint64_t> offset = {}) {
    if (problems_.size() == problems_max_) {
      ++left_out_;
      return;
    }
    problems_.push_back({shard_, object_, sample, offset, std::move(what)});
  }

 private:
  void set_locator(Result<std::shared_ptr<const format::ShardLocator>> made) {
    if (made.is_ok()) {
      locator_ = std::move(*made);
      return;
    }
    lose(made.status());
  }

  // Without knowing where samples lie only the hashes remain.
  void lose(const Status& status) {
    is_lost_ = true;
    buffer_.clear();
    add_problem(status.message());
  }

  void check_units() {
    while (!is_lost_ && next_ < info_.samples) {
      Status located = locator_->locate(next_, unit_);
      if (located.is_ok() && (unit_.extents.size() != 1 || !unit_.codecs.empty())) {
        located = unimplemented("its units are compressed or in pieces, which is not checked yet");
      }
      if (!located.is_ok()) return lose(located);
      const ByteRange range = unit_.extents[0].range;
      if (range.offset < buffer_at_) return lose(corrupt("its samples are not in order"));
      if (range.end() > buffer_at_ + buffer_.size()) {
        drop_until(range.offset);
        return;
      }
      check_unit(as_bytes(buffer_).subspan(range.offset - buffer_at_, range.length), range.offset);
      next_ = unit_.first_sample + unit_.samples;
    }
    buffer_.clear();
  }

  void check_unit(ByteView bytes, std::uint64_t offset) {
    for (std::uint64_t i = 0; i < unit_.samples; ++i) {
      ++checked_;
      const Status status = reader_.view(bytes, i, values_);
      if (!status.is_ok()) add_problem(status.message(), unit_.first_sample + i, offset);
    }
  }

  void drop_until(std::uint64_t offset) {
    const std::uint64_t drop = std::min<std::uint64_t>(offset - buffer_at_, buffer_.size());
    buffer_.erase(0, drop);
    buffer_at_ += drop;
  }

  const format::Reader& reader_;
  const format::ShardInfo& info_;
  const std::uint32_t shard_;
  const std::string object_;
  const std::size_t problems_max_;
  std::vector<std::unique_ptr<trust::Hasher>> hashers_;  // null for an unknown one
  std::shared_ptr<const format::ShardLocator> locator_;
  format::FetchUnit unit_;
  std::vector<format::FieldValue> values_;
  std::string buffer_;
  std::uint64_t buffer_at_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t checked_ = 0;
  bool is_lost_ = false;
  std::vector<Problem> problems_;
  std::uint64_t left_out_ = 0;
};

}  // namespace

Result<VerifyReport> verify_dataset(store::ByteSource& source, const format::Reader& reader,
                                    exec::Executor& executor, const VerifyOptions& options) {
  VerifyReport report;
  std::vector<std::unique_ptr<ShardCheck>> checks;
  std::vector<ObjectVisitor*> visitors;
  std::vector<store::ObjectRef> objects;
  std::uint64_t total = 0;
  for (std::uint32_t s = 0; s < reader.shards().size(); ++s) {
    const format::ShardInfo& info = reader.shards()[s];
    checks.push_back(std::make_unique<ShardCheck>(reader, s, source.describe(info.name),
                                                  std::max<std::size_t>(options.problems_max, 1)));
    visitors.push_back(checks.back().get());
    objects.push_back({info.name, "", {}});
    total += info.bytes;
    report.shards_without_hash += info.hashes.empty() ? 1 : 0;
  }
  StreamOptions stream = options.stream;
  stream.stop_at_failure = false;
  stream.progress = [&](std::uint64_t bytes) {
    report.bytes = bytes;
    if (options.progress) options.progress(bytes, std::max(bytes, total));
  };
  const std::vector<Status> outcomes = stream_objects(source, executor, objects, visitors, stream);
  if (options.stream.stop.stop_requested()) return cancelled("verifying was stopped");
  for (std::size_t s = 0; s < checks.size(); ++s) {
    ShardCheck& check = *checks[s];
    // A failed visitor has told its problem itself.
    if (!outcomes[s].is_ok() && check.problems().empty()) {
      check.add_problem(outcomes[s].message());
    }
    ++report.shards;
    report.samples += check.checked();
    report.problems_left_out += check.left_out();
    std::move(check.problems().begin(), check.problems().end(),
              std::back_inserter(report.problems));
  }
  return report;
}

}  // namespace headrace::loader
