// Loader: delivers the batches of one rank, in the run order, ahead of the consumer, within a
// budget.
// Thread-safety: one consumer thread at a time calls next() and seek(); close(), stats() and
// position() may be called from any thread.
// Ownership: shares the data set and stage; the executor and metrics must outlive the loader;
// batches may outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/codec/image.h"
#include "headrace/loader/arena.h"
#include "headrace/loader/batch.h"
#include "headrace/loader/dataset.h"
#include "headrace/loader/external_stage.h"
#include "headrace/order/order_state.h"
#include "headrace/order/steps.h"

namespace headrace::loader {

enum class BadSamples : std::uint8_t {
  kRaise,       // next() fails and names the sample
  kSkip,        // the row is left out and counted; the batch gets shorter
  kSubstitute,  // the next good sample of the same batch takes its row; counted
};

struct LoaderOptions {
  std::uint64_t global_batch = 1;  // samples of a step over all ranks
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  order::OrderRequest order;
  order::EpochEnd epoch_end = order::EpochEnd::kDrop;
  order::Assignment assignment = order::Assignment::kLocal;
  order::SkipList skip;
  // Fields to deliver, by name; empty means all.
  std::vector<std::string> columns;
  // Pictures to decode, by field; others are delivered as stored.
  std::map<std::string, codec::ImageSpec> decode;
  BadSamples bad_samples = BadSamples::kRaise;
  std::uint64_t memory = std::uint64_t{1} << 30;  // bytes: batches ahead, held ones, fetched ranges
  std::uint32_t batches_ahead = 0;                // at most; 0: 2 + 2 * executor width
  Duration read_timeout = std::chrono::seconds(60);    // of one fetch, retries included
  Duration batch_timeout = std::chrono::seconds(300);  // the consumer waits no longer for a batch
  Duration held_timeout = std::chrono::seconds(10);    // ... nor for memory that it holds itself
};

struct LoaderDeps {
  exec::Executor& executor;
  obs::Metrics& metrics;
  obs::LogSink log;
};

// What follows from data and options; printed by info, bench and the first log line.
struct LoaderPlan {
  order::OrderSpec order;
  std::uint64_t samples = 0;
  std::uint32_t lanes = 0;
  double deff = 1;
  bool is_local = false;           // bytes are addressed in place: no window in memory
  std::uint64_t window_bytes = 0;  // this rank's share that must be in memory; 0 when local
};

class Engine;

class Loader {
 public:
  // Exhausted when this rank's share of the window does not fit into the memory, with the options
  // and the shuffle quality of each.
  static Result<std::unique_ptr<Loader>> make(std::shared_ptr<Dataset> dataset, SampleSet samples,
                                              LoaderOptions options, LoaderDeps deps,
                                              std::shared_ptr<ExternalStage> stage = nullptr);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const LoaderPlan& plan() const;
  std::shared_ptr<const order::StepPlanner> planner() const;

  // The next batch; null when none is ready at `deadline`, and calling again is fine. A failure is
  // final until seek(): among others Deadline after `batch_timeout` without a batch, and Exhausted
  // when the consumer holds all memory. Reading ahead starts with the first call.
  Result<std::shared_ptr<Batch>> next(TimePoint deadline = kForever);

  // Run position of the next sample that next() has not handed out.
  std::uint64_t position() const;
  // Goes on at `position`; what was read ahead is dropped.
  Status seek(std::uint64_t position);

  // The state after the batches handed out so far; equal on every rank.
  order::OrderState state() const;
  // Takes up a state; InvalidArgument names what differs when it belongs to other data or order.
  Status load_state(const order::OrderState& state);

  Arena::Usage memory() const;

  // Ends everything under way and returns once no task of this loader runs any more. next() then
  // answers Cancelled. Idempotent; never waits longer than one decode or transform takes.
  void close();

 private:
  explicit Loader(std::unique_ptr<Engine> engine);
  std::unique_ptr<Engine> engine_;
};

}  // namespace headrace::loader
