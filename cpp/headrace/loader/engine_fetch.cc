// Fetching: brings the chunks that rows lie in into memory, in batch order. A chunk is read once,
// in one request, and stays until its memory is needed for a chunk that is due earlier than any use
// of it that is planned. The first batches, and a front batch for which whole chunks find no
// memory, read single samples.
#include <algorithm>
#include <utility>

#include "headrace/loader/engine.h"

namespace headrace::loader {
namespace {

// Two wanted pieces with less than this between them are cheaper to read as one.
constexpr std::uint64_t kGapBytes = 16 << 10;
// Offsets of 64 M samples; more than that in one shard is an index that lies.
constexpr std::uint64_t kLocatorBytesMax = std::uint64_t{256} << 20;

}  // namespace

void Engine::start_fetches(Actions& actions) {
  front_lacks_memory_ = false;
  bool is_blocked = false;  // an earlier work lacks something: later ones only ask for locators
  for (const WorkPtr& work : works_) {
    if (work->stage == Stage::kFailed) return;
    if (work->stage != Stage::kPlanned) continue;
    const Result<bool> located = want_locators(*work, actions);
    if (!located.is_ok()) return stop_at(*work, located.status());
    is_blocked |= !*located;
    while (!is_blocked && work->next_row < work->rows.size()) {
      const Result<bool> granted = want_range(work, work->rows[work->next_row], actions);
      if (!granted.is_ok()) {
        // The row is taken out or replaced, so the same place is tried again.
        const Status status = handle_bad(*work, {{work->next_row, granted.status()}}, false);
        if (!status.is_ok()) return stop_at(*work, status);
        continue;
      }
      if (*granted) {
        ++work->next_row;
        continue;
      }
      front_lacks_memory_ = work == works_.front();
      is_blocked = true;
    }
    if (is_blocked) continue;
    work->stage = work->pending > 0 ? Stage::kFetching : Stage::kResolving;
    if (work->pending == 0) actions.resolve.push_back(work);
  }
}

Result<bool> Engine::want_locators(Work& work, Actions& actions) {
  std::vector<std::pair<std::uint64_t, Status>> bad;
  for (std::size_t i = 0; !locator_failures_.empty() && i < work.rows.size(); ++i) {
    const auto failed = locator_failures_.find(work.rows[i].ref.shard);
    if (failed != locator_failures_.end()) bad.emplace_back(i, failed->second);
  }
  if (!bad.empty()) HR_TRY(handle_bad(work, std::move(bad), false));
  bool complete = true;
  for (const Row& row : work.rows) {
    const std::uint32_t shard = row.ref.shard;
    HR_ASSIGN(const format::ShardLocator* locator, dataset_->locator(shard));
    if (locator) continue;
    complete = false;
    if (!locators_out_.insert(shard).second) continue;
    auto pass = gate_.enter();
    if (!pass) return cancelled("the loader is closed");
    const format::Extent extent = *dataset_->reader().locator_extent(shard);
    if (extent.range.length > kLocatorBytesMax) {
      return corrupt(dataset_->describe(shard, 0) + ": a table of " +
                     std::to_string(extent.range.length) + " bytes is no table of offsets");
    }
    store::ReadRequest read;
    read.object = dataset_->object(extent.object);
    read.ranges = {extent.range};
    read.deadline = deps_.executor.clock().now() + options_.read_timeout;
    read.destination = heap_lease(extent.range.length);
    read.stop = stop_.get_token();
    read.done = [this, shard, generation = generation_,
                 held = std::make_shared<exec::Gate::Pass>(std::move(*pass))](
                    Result<store::ReadReply> reply) {
      fetched_locator(shard, generation, std::move(reply));
    };
    actions.reads.push_back(std::move(read));
  }
  return complete;
}

Status Engine::check_reply(std::uint32_t shard, const store::ReadReply& reply) {
  const format::ShardInfo& info = dataset_->reader().shards()[shard];
  if (reply.info.size != info.bytes) {
    return corrupt(dataset_->store().describe(info.name) + " has " +
                   std::to_string(reply.info.size) + " bytes where the index says " +
                   std::to_string(info.bytes) +
                   ": truncated or replaced since it was indexed; fetch it again or index anew");
  }
  dataset_->remember_pin(shard, reply.info.pin);
  return Status::ok();
}

void Engine::fetched_locator(std::uint32_t shard, std::uint64_t generation,
                             Result<store::ReadReply> reply) {
  Status status = reply.is_ok() ? check_reply(shard, *reply) : reply.status();
  if (status.is_ok()) {
    fetched_bytes_total_.add(reply->length);
    const ByteView bytes = ByteView(reply->memory.bytes()).subspan(0, reply->length);
    status = dataset_->adopt_locator(shard, bytes).status();
  }
  Actions actions;
  {
    MutexLock lock(mutex_);
    if (closed_ || generation != generation_) return;
    locators_out_.erase(shard);
    if (!status.is_ok()) locator_failures_.emplace(shard, std::move(status));
    advance(actions);
  }
  run(std::move(actions));
}

Result<std::shared_ptr<Range>> Engine::make_range(const Row& row, const order::Piece& piece) const {
  auto range = std::make_shared<Range>();
  range->key = {row.epoch, row.run, piece.first, piece.count};
  range->shard = row.ref.shard;
  HR_ASSIGN(const format::ShardLocator* locator, dataset_->locator(row.ref.shard));
  format::FetchUnit unit;
  std::vector<ByteRange> wanted;
  for (std::uint64_t i = 0; i < piece.count; ++i) {
    const SampleRef ref = samples_.at(row.run, piece.first + i);
    HR_TRY(locator->locate(ref.sample, unit));
    for (const format::Extent& extent : unit.extents) wanted.push_back(extent.range);
  }
  std::sort(wanted.begin(), wanted.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
  for (const ByteRange& next : wanted) {
    if (!range->extents.empty() && next.offset <= range->extents.back().end() + kGapBytes) {
      ByteRange& last = range->extents.back();
      last.length = std::max(last.end(), next.end()) - last.offset;
    } else {
      range->extents.push_back(next);
    }
  }
  for (const ByteRange& extent : range->extents) range->bytes += extent.length;
  return range;
}

bool Engine::lease_range(Range& range, Lease& memory) {
  std::vector<std::shared_ptr<Range>> dropped;
  if (!residency_.make_room(range.bytes, dropped)) return false;
  dropped.clear();
  std::optional<Lease> lease = arena_.try_lease(range.bytes);
  while (!lease && residency_.drop_one(dropped)) {
    dropped.clear();
    lease = arena_.try_lease(range.bytes);
  }
  if (!lease) return false;
  memory = std::move(*lease);
  return true;
}

Result<bool> Engine::want_range(const WorkPtr& work, Row& row, Actions& actions) {
  const order::Piece single{row.piece.shard, row.run_sample, 1};
  std::shared_ptr<Range> range;
  for (const order::Piece& piece : {row.piece, single}) {
    range = residency_.use({row.epoch, row.run, piece.first, piece.count});
    if (range) break;
    if (piece.count > 1 && work->is_early) continue;
    HR_ASSIGN(auto made, make_range(row, piece));
    Lease memory;
    if (!lease_range(*made, memory)) {
      // Whole chunks are worth waiting for, unless it is the consumer who waits.
      if (work != works_.front()) return false;
      continue;
    }
    auto pass = gate_.enter();
    if (!pass) return cancelled("the loader is closed");
    range = made;
    residency_.add(range);
    store::ReadRequest read;
    read.object = dataset_->object(range->shard);
    read.ranges = range->extents;
    read.deadline = deps_.executor.clock().now() + options_.read_timeout;
    read.priority = work == works_.front() ? store::Priority::kDemand : store::Priority::kNear;
    read.destination = std::move(memory);
    read.stop = stop_.get_token();
    read.done = [this, range, generation = generation_, start = deps_.executor.clock().now(),
                 held = std::make_shared<exec::Gate::Pass>(std::move(*pass))](
                    Result<store::ReadReply> reply) {
      fetch_.record(static_cast<std::uint64_t>((deps_.executor.clock().now() - start).count()));
      fetched_range(range, generation, std::move(reply));
    };
    actions.reads.push_back(std::move(read));
    break;
  }
  if (!range) return false;
  row.range = range;
  if (range->last_user == work.get()) {
    // Counted for this work already; `use` has counted it once more.
    --range->users;
    return true;
  }
  range->last_user = work.get();
  work->ranges.push_back(range);
  if (!range->is_ready) {
    range->waiting.push_back(work);
    ++work->pending;
  }
  return true;
}

void Engine::fetched_range(const std::shared_ptr<Range>& range, std::uint64_t generation,
                           Result<store::ReadReply> reply) {
  Status status = reply.is_ok() ? check_reply(range->shard, *reply) : reply.status();
  if (status.is_ok() && reply->length != range->bytes) {
    status =
        corrupt(dataset_->describe(range->shard, range->key.first) + ": got " +
                std::to_string(reply->length) + " of " + std::to_string(range->bytes) + " bytes");
  }
  Actions actions;
  {
    MutexLock lock(mutex_);
    if (closed_ || generation != generation_) return;
    if (status.is_ok()) {
      range->memory = std::move(reply->memory);
      fetched_bytes_total_.add(range->bytes);
    }
    range->failure = std::move(status);
    range->is_ready = true;
    for (const auto& weak : range->waiting) {
      const WorkPtr work = weak.lock();
      if (!work || !is_current(*work) || --work->pending > 0) continue;
      if (work->stage != Stage::kFetching) continue;
      work->stage = Stage::kResolving;
      actions.resolve.push_back(work);
    }
    range->waiting.clear();
    advance(actions);
  }
  run(std::move(actions));
}

}  // namespace headrace::loader
