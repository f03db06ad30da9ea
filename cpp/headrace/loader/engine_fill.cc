// Filling: from bytes in memory to a finished batch. A bad row is taken out or replaced and the
// batch is made again; each round removes a row for good, so this ends.
#include <algorithm>
#include <utility>

#include "headrace/loader/engine.h"

namespace headrace::loader {
namespace {

// What one task copies or decodes at most, so that a batch spreads over the workers.
constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kChunkPictures = 4;

// Faults of one sample, as against faults of the store or of the request.
bool is_sample_fault(Code code) {
  return code == Code::kCorrupt || code == Code::kUnimplemented || code == Code::kExhausted;
}

}  // namespace

Status Engine::resolve_row(const Row& row, std::span<format::FieldValue> values) const {
  thread_local format::FetchUnit unit;
  HR_ASSIGN(const format::ShardLocator* locator, dataset_->locator(row.ref.shard));
  HR_CHECK(locator != nullptr, "a row is resolved before its locator is here");
  HR_TRY(locator->locate(row.ref.sample, unit));
  if (!unit.codecs.empty() || unit.extents.size() != 1) {
    return unimplemented("units that are compressed or in several pieces are not read yet");
  }
  const format::Extent& extent = unit.extents.front();
  ByteView bytes;
  if (row.range) {
    if (!row.range->failure.is_ok()) return row.range->failure;
    const auto view = row.range->view(extent.range);
    HR_CHECK(view.has_value(), "a fetched range lacks a sample that it was made for");
    bytes = *view;
  } else {
    HR_ASSIGN(const auto whole, dataset_->peek_shard(extent.object));
    if (!whole) return unavailable("the shard cannot be addressed in place any more");
    bytes = whole->subspan(extent.range.offset, extent.range.length);
  }
  return dataset_->reader().view(bytes, row.ref.sample - unit.first_sample, values);
}

void Engine::resolve(const WorkPtr& work) {
  const std::size_t fields = assembler_.fields();
  while (true) {
    work->values.assign(work->rows.size() * fields, {});
    std::vector<std::pair<std::uint64_t, Status>> bad;
    for (std::size_t i = 0; i < work->rows.size(); ++i) {
      Status status = resolve_row(work->rows[i], {&work->values[i * fields], fields});
      if (!status.is_ok()) bad.emplace_back(i, std::move(status));
    }
    auto batch = std::make_shared<Batch>();
    if (bad.empty()) {
      std::optional<std::uint64_t> bad_row;
      auto bytes = assembler_.layout(work->values, work->rows.size(), *batch, bad_row);
      if (bytes.is_ok()) {
        work->slot_bytes = *bytes;
        work->batch = std::move(batch);
        break;
      }
      if (!bad_row) return fail(work, bytes.status());
      bad.emplace_back(*bad_row, bytes.status());
    }
    if (Status status = handle_bad(*work, std::move(bad), false); !status.is_ok()) {
      return fail(work, std::move(status));
    }
  }
  const std::uint64_t slot_max = options_.memory / (plan_.is_local ? 2 : 4);
  if (work->slot_bytes > slot_max) {
    return fail(work, exhausted("one batch takes " + std::to_string(work->slot_bytes) +
                                " bytes, above the " + std::to_string(slot_max) +
                                " that the memory budget of " + std::to_string(options_.memory) +
                                " leaves for it; lower batch_size or raise memory="));
  }
  Actions actions;
  bool mine = false;
  {
    MutexLock lock(mutex_);
    if (!is_current(*work)) return;
    work->stage = Stage::kResolved;
    advance(actions);
    // This task fills its own batch at once instead of posting it.
    const auto own = std::find(actions.fill.begin(), actions.fill.end(), work);
    mine = own != actions.fill.end();
    if (mine) actions.fill.erase(own);
  }
  run(std::move(actions));
  if (mine) start_fill(work);
}

Status Engine::handle_bad(Work& work, std::vector<std::pair<std::uint64_t, Status>> bad,
                          bool is_own) {
  for (const auto& [row, status] : bad) {
    const SampleRef& which = work.rows[row].ref;
    const Status named = status.with_context(dataset_->describe(which.shard, which.sample));
    if (options_.bad_samples == BadSamples::kRaise ||
        (!is_own && !is_sample_fault(status.code()))) {
      return named;
    }
    if (!work.bad_ordinals.insert(which.ordinal).second) continue;
    bad_samples_total_.add();
    obs::log(deps_.log, obs::Level::kWarning, "loader.bad_sample", named.to_string());
  }
  const auto is_bad = [&work](const Row& row) {
    return work.bad_ordinals.contains(row.ref.ordinal);
  };
  std::vector<Row> rows;
  rows.reserve(work.rows.size());
  for (std::size_t i = 0; i < work.rows.size(); ++i) {
    if (!is_bad(work.rows[i])) {
      rows.push_back(work.rows[i]);
      continue;
    }
    if (options_.bad_samples == BadSamples::kSkip) continue;
    std::size_t other = (i + 1) % work.rows.size();
    while (other != i && is_bad(work.rows[other])) other = (other + 1) % work.rows.size();
    if (other == i) {
      return bad.front().second.with_context(
          "no good sample is left in the batch to substitute with");
    }
    Row row = work.rows[other];
    row.is_real = work.rows[i].is_real;
    rows.push_back(std::move(row));
  }
  work.rows = std::move(rows);
  return Status::ok();
}

// Slots are leased in batch order only: a later batch that holds memory while an earlier one waits
// for some could never be handed over.
void Engine::grant_slots(Actions& actions) {
  for (const WorkPtr& work : works_) {
    if (work->stage == Stage::kFailed) return;
    if (work->stage < Stage::kResolved) return;
    if (work->stage != Stage::kResolved) continue;
    std::optional<Lease> slot = arena_.try_lease(work->slot_bytes);
    std::vector<std::shared_ptr<Range>> dropped;
    while (!slot && residency_.drop_one(dropped)) {
      dropped.clear();
      slot = arena_.try_lease(work->slot_bytes);
    }
    if (!slot) return;
    work->batch->slot = std::move(*slot);
    work->stage = Stage::kFilling;
    actions.fill.push_back(work);
  }
}

void Engine::start_fill(const WorkPtr& work) {
  Batch& batch = *work->batch;
  assembler_.bind(work->values, std::move(batch.slot), batch);
  batch.epoch = work->step.epoch;
  batch.begin = work->step.begin;
  batch.next = work->step.next;
  batch.ends_epoch = work->step.ends_epoch;
  batch.weight = work->weight;
  for (std::size_t i = 0; i < batch.mask.size(); ++i) {
    batch.mask[i] = std::byte{work->rows[i].is_real};
  }
  const std::uint64_t rows = batch.rows;
  const std::uint64_t chunk =
      assembler_.decodes()
          ? kChunkPictures
          : std::max<std::uint64_t>(
                1, rows * kChunkBytes / std::max<std::uint64_t>(1, work->slot_bytes));
  const std::uint64_t chunks = std::max<std::uint64_t>(1, (rows + chunk - 1) / chunk);
  work->chunks_left = chunks;
  for (std::uint64_t c = 1; c < chunks; ++c) {
    post([this, work, begin = c * chunk, end = std::min(rows, (c + 1) * chunk)] {
      fill_rows(work, begin, end);
    });
  }
  fill_rows(work, 0, std::min(rows, chunk));
}

void Engine::fill_rows(const WorkPtr& work, std::uint64_t begin, std::uint64_t end) {
  const TimePoint start = deps_.executor.clock().now();
  const std::size_t fields = assembler_.fields();
  for (std::uint64_t i = begin; i < end; ++i) {
    const Row& row = work->rows[i];
    Status status = assembler_.fill(i, {&work->values[i * fields], fields}, row.epoch,
                                    row.ref.ordinal, *work->batch);
    if (status.is_ok()) continue;
    MutexLock lock(work->bad_mutex);
    work->bad.emplace_back(i, std::move(status));
  }
  const Duration took = deps_.executor.clock().now() - start;
  fill_.record(static_cast<std::uint64_t>(took.count()));
  if (work->chunks_left.fetch_sub(1) == 1) finish_fill(work);
}

void Engine::finish_fill(const WorkPtr& work) {
  std::vector<std::pair<std::uint64_t, Status>> bad;
  {
    MutexLock lock(work->bad_mutex);
    bad.swap(work->bad);
  }
  if (!bad.empty()) {
    if (Status status = handle_bad(*work, std::move(bad), false); !status.is_ok()) {
      return fail(work, std::move(status));
    }
    return redo(work);
  }
  if (!stage_) return finish(work);
  Actions actions;
  {
    MutexLock lock(mutex_);
    if (!is_current(*work)) return;
    work->stage = Stage::kExternal;
    advance(actions);
  }
  run(std::move(actions));
}

// Makes the batch again with its present rows. It keeps its place among the granted ones, so it
// must not wait for memory that later batches may hold: what the arena lacks comes from the heap.
void Engine::redo(const WorkPtr& work) {
  const std::size_t fields = assembler_.fields();
  work->values.assign(work->rows.size() * fields, {});
  for (std::size_t i = 0; i < work->rows.size(); ++i) {
    Status status = resolve_row(work->rows[i], {&work->values[i * fields], fields});
    if (!status.is_ok()) return fail(work, std::move(status));
  }
  work->batch = std::make_shared<Batch>();
  std::optional<std::uint64_t> bad_row;
  const auto bytes = assembler_.layout(work->values, work->rows.size(), *work->batch, bad_row);
  if (!bytes.is_ok()) return fail(work, bytes.status());
  work->slot_bytes = *bytes;
  std::optional<Lease> slot = arena_.try_lease(*bytes);
  work->batch->slot = slot ? std::move(*slot) : heap_lease(*bytes);
  start_fill(work);
}

void Engine::run_external(const WorkPtr& work) {
  SampleChunk chunk{work->batch, plan_.order.seed, {}};
  chunk.epochs.reserve(work->rows.size());
  for (const Row& row : work->rows) chunk.epochs.push_back(row.epoch);
  auto pass = gate_.enter();
  if (!pass) return;
  const auto held = std::make_shared<exec::Gate::Pass>(std::move(*pass));
  stage_->submit(std::move(chunk), [this, work, held](Result<StageOutput> output) {
    finish_external(work, std::move(output));
  });
}

void Engine::finish_external(const WorkPtr& work, Result<StageOutput> output) {
  {
    MutexLock lock(mutex_);
    if (!is_current(*work)) return;
    --external_out_;
    work->pending = 0;
  }
  if (!output.is_ok()) return fail(work, output.status());
  if (!output->failed.empty()) {
    if (Status status = handle_bad(*work, std::move(output->failed), true); !status.is_ok()) {
      return fail(work, std::move(status));
    }
    {
      MutexLock lock(mutex_);
      if (!is_current(*work)) return;
      work->stage = Stage::kFilling;
    }
    return redo(work);
  }
  work->batch->external = std::move(output->value);
  finish(work);
}

void Engine::finish(const WorkPtr& work) {
  Actions actions;
  std::vector<std::shared_ptr<Range>> ranges;
  {
    MutexLock lock(mutex_);
    if (!is_current(*work)) return;
    work->stage = Stage::kReady;
    ranges.swap(work->ranges);
    for (const auto& range : ranges) residency_.release(range);
    work->rows.clear();
    work->values.clear();
    advance(actions);
  }
  run(std::move(actions));
}

}  // namespace headrace::loader
