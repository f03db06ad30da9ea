// Engine: the state machine behind Loader. Each batch is a Work that moves through the stages
//   planned -> fetching -> resolving -> resolved -> filling -> external -> ready
// on the executor. Two things happen strictly in batch order, so that an early batch never waits
// for memory that later ones hold: fetched ranges are leased, and slots are leased. Data that can
// be addressed in place skips fetching. One mutex guards all bookkeeping; bytes are read, copied
// and decoded without it.
// Thread-safety: as Loader; tasks run on any worker.
// Ownership: tasks share their Work and hold a pass of the gate, so close() can wait for them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/exec/gate.h"
#include "headrace/loader/assembler.h"
#include "headrace/loader/loader.h"
#include "headrace/loader/residency.h"

namespace headrace::loader {

struct Row {
  SampleRef ref;
  std::uint32_t run = 0;  // as the order sees the view: run, and sample within it
  std::uint64_t run_sample = 0;
  order::Piece piece;  // of the order's chunk, in the run; remote data only
  std::uint64_t position = 0;
  std::uint64_t epoch = 0;
  bool is_real = true;           // false for padding
  std::shared_ptr<Range> range;  // fetched bytes that hold the row; null when addressed in place
};

enum class Stage : std::uint8_t {
  kPlanned,
  kFetching,
  kResolving,
  kResolved,
  kFilling,
  kExternal,
  kReady,
  kFailed,
};

// One batch on its way. `stage`, `pending`, `next_row` and `failure` are guarded by Engine::mutex_;
// the rest belongs to the task that moves the work on.
struct Work {
  std::uint64_t generation = 0;
  bool is_early = false;  // among the first after a start or seek: reads single samples
  order::Step step;
  double weight = 1;
  std::vector<Row> rows;
  std::vector<std::shared_ptr<Range>> ranges;  // all that rows use, each once
  std::vector<format::FieldValue> values;      // rows x fields
  std::shared_ptr<Batch> batch;
  std::uint64_t slot_bytes = 0;
  std::set<std::uint64_t> bad_ordinals;  // never tried again, so that every repair makes progress

  Stage stage = Stage::kPlanned;
  std::size_t next_row = 0;  // the first row whose range is not leased yet
  std::size_t pending = 0;   // ranges under way
  Status failure;

  std::atomic<std::uint64_t> chunks_left = 0;
  Mutex bad_mutex;
  std::vector<std::pair<std::uint64_t, Status>> bad HR_GUARDED_BY(bad_mutex);
};
using WorkPtr = std::shared_ptr<Work>;

class Engine {
 public:
  Engine(std::shared_ptr<Dataset> dataset, SampleSet samples, LoaderOptions options,
         LoaderDeps deps, std::shared_ptr<ExternalStage> stage, LoaderPlan plan,
         order::StepPlanner planner, Assembler assembler);
  ~Engine();

  const LoaderPlan& plan() const { return plan_; }
  std::shared_ptr<const order::StepPlanner> planner() const HR_EXCLUDES(mutex_);
  Result<std::shared_ptr<Batch>> next(TimePoint deadline) HR_EXCLUDES(mutex_);
  std::uint64_t position() const HR_EXCLUDES(mutex_);
  Status seek(std::uint64_t position) HR_EXCLUDES(mutex_);
  order::OrderState state() const HR_EXCLUDES(mutex_);
  Status load_state(const order::OrderState& state) HR_EXCLUDES(mutex_);
  Arena::Usage memory() const { return arena_.usage(); }
  void close() HR_EXCLUDES(mutex_);

 private:
  using Pass = std::shared_ptr<exec::Gate::Pass>;
  // What a locked section decided to do once the lock is released.
  struct Actions {
    std::vector<store::ReadRequest> reads;
    std::vector<WorkPtr> resolve;
    std::vector<WorkPtr> fill;
    std::vector<WorkPtr> external;
    std::optional<std::uint64_t> produce;  // the generation to plan for
    bool notify = false;
  };

  // engine.cc: handing over, starting, stopping.
  Result<std::shared_ptr<Batch>> take_front() HR_REQUIRES(mutex_);
  Status waited_too_long(TimePoint now) const HR_REQUIRES(mutex_);
  void restart(std::uint64_t position) HR_REQUIRES(mutex_);
  bool is_current(const Work& work) const HR_REQUIRES(mutex_) {
    return !closed_ && work.generation == generation_;
  }
  void pump() HR_EXCLUDES(mutex_);
  void advance(Actions& actions) HR_REQUIRES(mutex_);
  void run(Actions actions) HR_EXCLUDES(mutex_);
  template <typename F>
  void post(F task) {
    if (auto pass = gate_.enter()) {
      deps_.executor.post([held = std::move(*pass), run = std::move(task)]() mutable { run(); });
    }
  }
  void fail(const WorkPtr& work, Status status) HR_EXCLUDES(mutex_);

  // engine_plan.cc: which samples the next batch holds.
  void produce(std::uint64_t generation) HR_EXCLUDES(mutex_);
  Result<WorkPtr> plan_work(const order::StepPlanner& planner, std::uint64_t position) const;

  // engine_fetch.cc: bringing ranges of remote data into memory, in batch order.
  void start_fetches(Actions& actions) HR_REQUIRES(mutex_);
  void stop_at(Work& work, Status status) HR_REQUIRES(mutex_);
  // True when the locators of all rows are here; asks for those that are not.
  Result<bool> want_locators(Work& work, Actions& actions) HR_REQUIRES(mutex_);
  // True when the row has its range; false when memory for it must come back first.
  Result<bool> want_range(const WorkPtr& work, Row& row, Actions& actions) HR_REQUIRES(mutex_);
  Result<std::shared_ptr<Range>> make_range(const Row& row, const order::Piece& piece) const;
  bool lease_range(Range& range, Lease& memory) HR_REQUIRES(mutex_);
  void fetched_locator(std::uint32_t shard, std::uint64_t generation,
                       Result<store::ReadReply> reply) HR_EXCLUDES(mutex_);
  void fetched_range(const std::shared_ptr<Range>& range, std::uint64_t generation,
                     Result<store::ReadReply> reply) HR_EXCLUDES(mutex_);
  Status check_reply(std::uint32_t shard, const store::ReadReply& reply);

  // engine_fill.cc: from bytes to a finished batch.
  void resolve(const WorkPtr& work) HR_EXCLUDES(mutex_);
  Status resolve_row(const Row& row, std::span<format::FieldValue> values) const;
  // Takes bad rows out of the work, or replaces them; fails under kRaise, and for faults that are
  // not the sample's own unless `is_own`.
  Status handle_bad(Work& work, std::vector<std::pair<std::uint64_t, Status>> bad, bool is_own);
  void grant_slots(Actions& actions) HR_REQUIRES(mutex_);
  void start_fill(const WorkPtr& work);
  void fill_rows(const WorkPtr& work, std::uint64_t begin, std::uint64_t end);
  void finish_fill(const WorkPtr& work) HR_EXCLUDES(mutex_);
  void run_external(const WorkPtr& work);
  void finish_external(const WorkPtr& work, Result<StageOutput> output) HR_EXCLUDES(mutex_);
  void finish(const WorkPtr& work) HR_EXCLUDES(mutex_);
  void redo(const WorkPtr& work);

  const std::shared_ptr<Dataset> dataset_;
  const SampleSet samples_;
  const LoaderOptions options_;
  const LoaderDeps deps_;
  const std::shared_ptr<ExternalStage> stage_;
  const LoaderPlan plan_;
  const Assembler assembler_;
  const std::size_t ahead_;

  obs::Counter& samples_total_;
  obs::Counter& batches_total_;
  obs::Counter& bytes_total_;
  obs::Counter& fetched_bytes_total_;
  obs::Counter& bad_samples_total_;
  obs::Histogram& wait_;
  obs::Histogram& fill_;
  obs::Histogram& fetch_;

  Arena arena_;
  std::atomic<bool> pump_posted_ = false;
  exec::Gate gate_;

  mutable Mutex mutex_;
  CondVar front_ready_;
  std::shared_ptr<const order::StepPlanner> planner_ HR_GUARDED_BY(mutex_);
  std::deque<WorkPtr> works_ HR_GUARDED_BY(mutex_);
  std::uint64_t generation_ HR_GUARDED_BY(mutex_) = 0;
  std::uint64_t planned_works_ HR_GUARDED_BY(mutex_) = 0;  // since the last start or seek
  std::uint64_t position_ HR_GUARDED_BY(mutex_) = 0;       // consumed up to here
  std::uint64_t plan_position_ HR_GUARDED_BY(mutex_) = 0;  // planned up to here
  bool planning_ HR_GUARDED_BY(mutex_) = false;
  Status plan_failure_ HR_GUARDED_BY(mutex_);
  std::size_t external_out_ HR_GUARDED_BY(mutex_) = 0;
  std::optional<TimePoint> waiting_since_ HR_GUARDED_BY(mutex_);
  bool closed_ HR_GUARDED_BY(mutex_) = false;
  std::stop_source stop_ HR_GUARDED_BY(mutex_);
  Residency residency_ HR_GUARDED_BY(mutex_);
  std::set<std::uint32_t> locators_out_ HR_GUARDED_BY(mutex_);  // shards whose tables are under way
  std::map<std::uint32_t, Status> locator_failures_ HR_GUARDED_BY(mutex_);
  bool front_lacks_memory_ HR_GUARDED_BY(mutex_) = false;
};

}  // namespace headrace::loader
