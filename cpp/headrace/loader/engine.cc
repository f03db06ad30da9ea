#include "headrace/loader/engine.h"

#include <algorithm>
#include <string>

#include "headrace/base/sha256.h"
#include "headrace/base/version.h"

namespace headrace::loader {
namespace {

// The share of the memory that fetched ranges may fill. Leases are rounded up by an eighth, so that
// at least a quarter stays for batches.
std::uint64_t range_budget(std::uint64_t memory) { return memory / 8 * 5; }

std::string seconds_text(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

}  // namespace

Engine::Engine(std::shared_ptr<Dataset> dataset, SampleSet samples, LoaderOptions options,
               LoaderDeps deps, std::shared_ptr<ExternalStage> stage, LoaderPlan plan,
               order::StepPlanner planner, Assembler assembler)
    : dataset_(std::move(dataset)),
      samples_(std::move(samples)),
      options_(std::move(options)),
      deps_(std::move(deps)),
      stage_(std::move(stage)),
      plan_(std::move(plan)),
      assembler_(std::move(assembler)),
      ahead_(options_.batches_ahead > 0
                 ? options_.batches_ahead
                 : (2 + 2 * deps_.executor.width()) * (plan_.is_local ? 1 : 4)),
      samples_total_(deps_.metrics.counter("headrace_loader_samples_total")),
      batches_total_(deps_.metrics.counter("headrace_loader_batches_total")),
      bytes_total_(deps_.metrics.counter("headrace_loader_batch_bytes_total")),
      fetched_bytes_total_(deps_.metrics.counter("headrace_loader_fetched_bytes_total")),
      bad_samples_total_(deps_.metrics.counter("headrace_loader_bad_samples_total")),
      wait_(deps_.metrics.histogram("headrace_loader_wait_nanoseconds")),
      fill_(deps_.metrics.histogram("headrace_loader_fill_nanoseconds")),
      fetch_(deps_.metrics.histogram("headrace_loader_fetch_nanoseconds")),
      arena_(options_.memory),
      gate_(deps_.executor),
      planner_(std::make_shared<const order::StepPlanner>(std::move(planner))),
      residency_(range_budget(options_.memory)) {
  // A batch may come back on any thread, even inside a locked section, so only a task is posted.
  arena_.set_on_release([this] {
    if (!pump_posted_.exchange(true)) {
      post([this] {
        pump_posted_ = false;
        pump();
      });
    }
  });
}

Engine::~Engine() { close(); }

Result<std::shared_ptr<Batch>> Engine::next(TimePoint deadline) {
  const TimePoint start = deps_.executor.clock().now();
  pump();
  Result<std::shared_ptr<Batch>> out = std::shared_ptr<Batch>();
  {
    MutexLock lock(mutex_);
    if (!waiting_since_) waiting_since_ = start;
    while (true) {
      out = take_front();
      if (!out.is_ok() || *out) break;
      const TimePoint now = deps_.executor.clock().now();
      if (now >= deadline) return out;
      if (Status status = waited_too_long(now); !status.is_ok()) return status;
      const TimePoint wake = std::min(deadline, now + options_.held_timeout);
      if (!deps_.executor.wait(mutex_, front_ready_, wake)) {
        return internal_error("the loader waits for a batch that nothing works on");
      }
    }
    if (out.is_ok()) {
      const Duration waited = deps_.executor.clock().now() - *waiting_since_;
      wait_.record(static_cast<std::uint64_t>(std::max<std::int64_t>(0, waited.count())));
      waiting_since_.reset();
    }
  }
  if (out.is_ok()) {
    samples_total_.add((*out)->rows);
    batches_total_.add();
    bytes_total_.add((*out)->slot.size());
    pump();
  }
  return out;
}

Result<std::shared_ptr<Batch>> Engine::take_front() {
  if (closed_) return cancelled("the loader is closed");
  if (works_.empty()) {
    if (!plan_failure_.is_ok()) return plan_failure_;
    return std::shared_ptr<Batch>();
  }
  Work& front = *works_.front();
  if (front.stage == Stage::kFailed) return front.failure;
  if (front.stage != Stage::kReady) return std::shared_ptr<Batch>();
  std::shared_ptr<Batch> batch = std::move(front.batch);
  works_.pop_front();
  position_ = batch->next;
  return batch;
}

// Nothing but the consumer can free memory when the front batch lacks a slot while no other work of
// this loader holds one: then a short wait is enough to know.
Status Engine::waited_too_long(TimePoint now) const {
  const Duration waited = now - *waiting_since_;
  const bool lacks_slot = !works_.empty() && works_.front()->stage == Stage::kResolved;
  if ((lacks_slot || front_lacks_memory_) && waited >= options_.held_timeout) {
    const Arena::Usage usage = arena_.usage();
    return exhausted("no memory for the next batch: " + std::to_string(usage.leases) +
                     " leases hold " + std::to_string(usage.leased) + " of " +
                     std::to_string(usage.budget) +
                     " bytes, batches that the caller keeps among them; copy what you keep "
                     "(.clone() or .copy()) or raise memory=");
  }
  if (waited < options_.batch_timeout) return Status::ok();
  return deadline_exceeded("no batch within " + seconds_text(options_.batch_timeout) +
                           " at position " + std::to_string(position_) + " of " + dataset_->url() +
                           "; stats() tells what it waits for");
}

std::shared_ptr<const order::StepPlanner> Engine::planner() const {
  MutexLock lock(mutex_);
  return planner_;
}

std::uint64_t Engine::position() const {
  MutexLock lock(mutex_);
  return position_;
}

void Engine::restart(std::uint64_t position) {
  ++generation_;
  stop_.request_stop();
  stop_ = std::stop_source();
  planned_works_ = 0;
  position_ = position;
  plan_position_ = position;
  planning_ = false;
  plan_failure_ = Status::ok();
  external_out_ = 0;
  waiting_since_.reset();
  locators_out_.clear();
  locator_failures_.clear();
  front_lacks_memory_ = false;
}

Status Engine::seek(std::uint64_t position) {
  HR_TRY(planner()->settle(position).status());
  std::deque<WorkPtr> dropped;
  Residency old(range_budget(options_.memory));
  std::stop_source old_stop;
  {
    MutexLock lock(mutex_);
    if (closed_) return cancelled("the loader is closed");
    old_stop = stop_;
    restart(position);
    dropped.swap(works_);
    std::swap(old, residency_);
  }
  return Status::ok();
}

order::OrderState Engine::state() const {
  order::OrderState out;
  out.source.name = plan_.order.source_name;
  const std::string view = samples_.fingerprint();
  out.source.identity = view.empty() ? dataset_->identity()
                                     : to_hex(sha256(as_bytes(dataset_->identity() + "\n" + view)));
  out.source.samples = plan_.samples;
  out.order = plan_.order;
  out.epoch_end = options_.epoch_end;
  out.assignment = options_.assignment;
  out.global_batch = options_.global_batch;
  out.skip = planner()->spec().skip;
  out.library_version = HEADRACE_VERSION;
  MutexLock lock(mutex_);
  out.next = position_;
  return out;
}

Status Engine::load_state(const order::OrderState& state) {
  HR_TRY(state.validate());
  HR_TRY(state.check_matches(this->state()));
  order::StepSpec spec = planner()->spec();
  std::vector<order::Interval> intervals = state.skip.intervals();
  const auto& own = spec.skip.intervals();
  intervals.insert(intervals.end(), own.begin(), own.end());
  HR_ASSIGN(spec.skip, order::SkipList::make(std::move(intervals)));
  HR_ASSIGN(order::StepPlanner merged, order::StepPlanner::make(planner()->order(), spec));
  {
    MutexLock lock(mutex_);
    planner_ = std::make_shared<const order::StepPlanner>(std::move(merged));
  }
  return seek(state.next);
}

void Engine::close() {
  arena_.set_on_release({});
  std::deque<WorkPtr> dropped;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    ++generation_;
    stop_.request_stop();
    dropped.swap(works_);
  }
  front_ready_.notify_all();
  dropped.clear();
  gate_.close();
  Residency old(0);
  MutexLock lock(mutex_);
  std::swap(old, residency_);
}

void Engine::pump() {
  Actions actions;
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    advance(actions);
  }
  run(std::move(actions));
}

void Engine::advance(Actions& actions) {
  if (!plan_.is_local) start_fetches(actions);
  grant_slots(actions);
  if (stage_) {
    for (const WorkPtr& work : works_) {
      if (external_out_ >= stage_->credits()) break;
      if (work->stage != Stage::kExternal || work->pending > 0) continue;
      ++external_out_;
      work->pending = 1;
      actions.external.push_back(work);
    }
  }
  if (!planning_ && plan_failure_.is_ok() && works_.size() < ahead_) {
    planning_ = true;
    actions.produce = generation_;
  }
  actions.notify = !works_.empty() && (works_.front()->stage == Stage::kReady ||
                                       works_.front()->stage == Stage::kFailed);
}

void Engine::run(Actions actions) {
  if (actions.notify) front_ready_.notify_all();
  for (store::ReadRequest& read : actions.reads) dataset_->store().submit(std::move(read));
  for (WorkPtr& work : actions.resolve) post([this, work] { resolve(work); });
  for (WorkPtr& work : actions.fill) post([this, work] { start_fill(work); });
  for (WorkPtr& work : actions.external) post([this, work] { run_external(work); });
  if (actions.produce) post([this, generation = *actions.produce] { produce(generation); });
}

void Engine::fail(const WorkPtr& work, Status status) {
  Actions actions;
  {
    MutexLock lock(mutex_);
    if (!is_current(*work)) return;
    stop_at(*work, std::move(status));
    advance(actions);
  }
  run(std::move(actions));
}

// What comes after a failure is not read: next() stays at the failure until seek().
void Engine::stop_at(Work& work, Status status) {
  work.failure = std::move(status);
  work.stage = Stage::kFailed;
  plan_failure_ = work.failure;
}

}  // namespace headrace::loader
