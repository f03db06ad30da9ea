// Planning: which samples the next batch of this rank holds. One plan is made at a time, without
// the lock; the planner then lets the next one start before it goes on with its own batch.
#include <algorithm>
#include <utility>

#include "headrace/loader/engine.h"

namespace headrace::loader {
namespace {

// Batches after a start or seek that read single samples, so that the first batch need not wait for
// a whole window of chunks.
constexpr std::uint64_t kEarlyBatches = 2;

}  // namespace

Result<WorkPtr> Engine::plan_work(const order::StepPlanner& planner, std::uint64_t position) const {
  auto work = std::make_shared<Work>();
  HR_ASSIGN(work->step, planner.plan(position));
  HR_ASSIGN(const order::RankShare share,
            planner.assign(work->step, options_.rank, options_.world));
  work->weight = share.weight;
  const std::vector<std::uint64_t>& positions = share.positions;
  std::vector<order::Placement> places(positions.size());
  // Neighbouring positions are placed in bulk, which costs a fraction of asking for each.
  for (std::size_t i = 0; i < positions.size();) {
    std::size_t end = i + 1;
    while (end < positions.size() && positions[end] == positions[end - 1] + 1) ++end;
    planner.order().fill(positions[i], end - i, &places[i]);
    i = end;
  }
  work->rows.resize(positions.size());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    Row& row = work->rows[i];
    row.ref = samples_.at(places[i].shard, places[i].sample);
    row.run = places[i].shard;
    row.run_sample = places[i].sample;
    if (!plan_.is_local) row.piece = planner.order().chunk_at(positions[i]);
    row.position = positions[i];
    row.epoch = positions[i] / plan_.samples;
    row.is_real = i < share.real;
  }
  return work;
}

void Engine::produce(std::uint64_t generation) {
  std::uint64_t position = 0;
  std::shared_ptr<const order::StepPlanner> planner;
  {
    MutexLock lock(mutex_);
    if (closed_ || generation != generation_) return;
    position = plan_position_;
    planner = planner_;
  }
  Result<WorkPtr> planned = plan_work(*planner, position);
  Actions actions;
  {
    MutexLock lock(mutex_);
    if (closed_ || generation != generation_) return;
    planning_ = false;
    if (planned.is_ok()) {
      Work& work = **planned;
      work.generation = generation;
      work.is_early = planned_works_++ < kEarlyBatches;
      work.stage = plan_.is_local ? Stage::kResolving : Stage::kPlanned;
      plan_position_ = work.step.next;
      works_.push_back(*planned);
    } else {
      plan_failure_ = planned.status();
    }
    advance(actions);
    actions.notify |= !planned.is_ok();
  }
  run(std::move(actions));
  if (planned.is_ok() && plan_.is_local) resolve(*planned);
}

}  // namespace headrace::loader
