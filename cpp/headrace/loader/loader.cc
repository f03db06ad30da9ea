#include "headrace/loader/loader.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "headrace/loader/engine.h"
#include "headrace/order/deff.h"

namespace headrace::loader {
namespace {

constexpr std::uint64_t kMemoryMin = std::uint64_t{4} << 20;

std::string size_text(std::uint64_t bytes) {
  char text[48];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

std::string deff_text(double deff) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", deff);
  return text;
}

// The first shard that holds samples; every view that can be loaded has one.
std::uint32_t first_shard(const SampleSet& samples) { return samples.at(0).shard; }

// How much of the window this rank must hold: its share of the lanes, half a block more since
// blocks are up to one and a half times their nominal size, and never more than there is.
std::uint64_t window_share(const order::OrderSpec& spec, std::uint64_t samples, std::uint32_t lanes,
                           std::uint64_t bytes, std::uint32_t world) {
  const double mean = static_cast<double>(bytes) / static_cast<double>(samples);
  const double kept = spec.shuffle ? std::min(1.5 * static_cast<double>(spec.window_samples),
                                              static_cast<double>(samples))
                                   : static_cast<double>(spec.chunk_samples);
  const double lanes_here = std::ceil(static_cast<double>(lanes) / world);
  return static_cast<std::uint64_t>(mean * kept * lanes_here / lanes);
}

// The largest window whose share fits into `room`, by the same reckoning that refuses others.
std::uint64_t window_that_fits(const LoaderPlan& plan, std::uint64_t stored_bytes,
                               std::uint32_t world, std::uint64_t room) {
  order::OrderSpec spec = plan.order;
  std::uint64_t low = spec.lanes;
  std::uint64_t high = std::max<std::uint64_t>(low, std::min(spec.window_samples, plan.samples));
  while (low < high) {
    spec.window_samples = low + (high - low + 1) / 2;
    if (window_share(spec, plan.samples, plan.lanes, stored_bytes, world) <= room) {
      low = spec.window_samples;
    } else {
      high = spec.window_samples - 1;
    }
  }
  return low;
}

Status check_window(const LoaderPlan& plan, const LoaderOptions& options,
                    std::uint64_t stored_bytes, const std::vector<std::uint64_t>& run_sizes) {
  const std::uint64_t room = options.memory / 8 * 5;
  if (plan.window_bytes <= room) return Status::ok();
  order::OrderSpec smaller = plan.order;
  smaller.window_samples = window_that_fits(plan, stored_bytes, options.world, room);
  const double deff_smaller =
      order::predicted_deff(*order::RunOrder::make(smaller, run_sizes), options.global_batch);
  // Whole MiB, rounded up, and samples: both can be pasted and are then accepted.
  const std::uint64_t memory_mib = ((plan.window_bytes / 5 * 8) >> 20) + 9;
  return exhausted("this rank must hold " + size_text(plan.window_bytes) +
                   " for its share of the shuffle window, and memory=" + size_text(options.memory) +
                   " leaves " + size_text(room) + " for it. Either memory=\"" +
                   std::to_string(memory_mib) + " MiB\" (DEFF " + deff_text(plan.deff) + " for " +
                   std::to_string(options.global_batch) + " samples a step), or Order(window=" +
                   std::to_string(smaller.window_samples) + ") in samples (DEFF " +
                   deff_text(deff_smaller) + "), or more ranks, each of which holds less");
}

}  // namespace

Loader::Loader(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
Loader::~Loader() = default;

Result<std::unique_ptr<Loader>> Loader::make(std::shared_ptr<Dataset> dataset, SampleSet samples,
                                             LoaderOptions options, LoaderDeps deps,
                                             std::shared_ptr<ExternalStage> stage) {
  if (samples.size() == 0) return invalid_argument(dataset->url() + ": no samples to load");
  if (options.memory < kMemoryMin) {
    return invalid_argument("memory= must be at least " + size_text(kMemoryMin));
  }
  if (options.rank >= options.world) {
    return invalid_argument("rank " + std::to_string(options.rank) + " of a world of " +
                            std::to_string(options.world));
  }
  LoaderPlan plan;
  plan.samples = samples.size();
  const double share = static_cast<double>(samples.size()) /
                       static_cast<double>(std::max<std::uint64_t>(1, dataset->samples()));
  const auto stored_bytes =
      static_cast<std::uint64_t>(share * static_cast<double>(dataset->stored_bytes()));
  if (dataset->reader().has_large_units()) options.order.layout = order::Layout::kUnit;
  HR_ASSIGN(plan.order, order::resolve_order(options.order, plan.samples, stored_bytes));
  HR_ASSIGN(order::RunOrder run_order, order::RunOrder::make(plan.order, samples.run_sizes()));
  plan.lanes = run_order.lanes();
  plan.deff = order::predicted_deff(run_order, options.global_batch);
  order::StepSpec steps{options.global_batch, options.epoch_end, options.assignment, options.skip};
  HR_ASSIGN(order::StepPlanner planner, order::StepPlanner::make(run_order, std::move(steps)));
  HR_TRY(planner.check_world(options.world));
  HR_ASSIGN(const auto peeked, dataset->peek_shard(first_shard(samples)));
  plan.is_local = peeked.has_value();
  if (!plan.is_local) {
    plan.window_bytes =
        window_share(plan.order, plan.samples, plan.lanes, stored_bytes, options.world);
    HR_TRY(check_window(plan, options, stored_bytes, samples.run_sizes()));
  }
  HR_ASSIGN(Assembler assembler,
            Assembler::make(dataset->schema(), options.columns, options.decode, plan.order.seed,
                            options.epoch_end == order::EpochEnd::kPad));
  obs::log(deps.log, obs::Level::kInfo, "loader.start",
           dataset->url() + ": " + std::to_string(plan.samples) + " samples, " +
               std::to_string(options.global_batch) + " a step over " +
               std::to_string(options.world) + " ranks, DEFF " + deff_text(plan.deff) +
               " (1 is an ideal shuffle)");
  return std::unique_ptr<Loader>(new Loader(std::make_unique<Engine>(
      std::move(dataset), std::move(samples), std::move(options), std::move(deps), std::move(stage),
      std::move(plan), std::move(planner), std::move(assembler))));
}

const LoaderPlan& Loader::plan() const { return engine_->plan(); }
std::shared_ptr<const order::StepPlanner> Loader::planner() const { return engine_->planner(); }
Result<std::shared_ptr<Batch>> Loader::next(TimePoint deadline) { return engine_->next(deadline); }
std::uint64_t Loader::position() const { return engine_->position(); }
Status Loader::seek(std::uint64_t position) { return engine_->seek(position); }
order::OrderState Loader::state() const { return engine_->state(); }
Status Loader::load_state(const order::OrderState& state) { return engine_->load_state(state); }
Arena::Usage Loader::memory() const { return engine_->memory(); }
void Loader::close() { engine_->close(); }

}  // namespace headrace::loader
