#include "headrace/order/steps.h"

#include <algorithm>
#include <array>
#include <string>

#include "headrace/base/check.h"

namespace headrace::order {
namespace {

constexpr std::array<std::string_view, 4> kEpochEnds = {"carry", "drop", "pad", "partial"};
constexpr std::array<std::string_view, 2> kAssignments = {"local", "strict"};

std::string number(std::uint64_t n) { return std::to_string(n); }

std::string interval_text(const Interval& i) {
  return "[" + number(i.begin) + ", " + number(i.end) + ")";
}

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Rank j of `world` takes [start, start + size) of n things.
Interval share_of(std::uint64_t n, std::uint64_t j, std::uint64_t world) {
  const std::uint64_t start = n / world * j + std::min(j, n % world);
  return {start, start + n / world + (j < n % world ? 1 : 0)};
}

}  // namespace

std::string_view epoch_end_name(EpochEnd end) { return kEpochEnds[static_cast<std::size_t>(end)]; }

std::optional<EpochEnd> epoch_end_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kEpochEnds.size(); ++i)
    if (kEpochEnds[i] == name) return static_cast<EpochEnd>(i);
  return std::nullopt;
}

std::string_view assignment_name(Assignment assignment) {
  return kAssignments[static_cast<std::size_t>(assignment)];
}

std::optional<Assignment> assignment_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kAssignments.size(); ++i)
    if (kAssignments[i] == name) return static_cast<Assignment>(i);
  return std::nullopt;
}

Result<SkipList> SkipList::make(std::vector<Interval> intervals) {
  for (const Interval& i : intervals) {
    if (i.begin > i.end)
      return invalid_argument("skip interval " + interval_text(i) + " ends before it begins");
    if (i.end > kPositionMax)
      return invalid_argument("skip interval " + interval_text(i) + " ends above position " +
                              number(kPositionMax));
  }
  std::erase_if(intervals, [](const Interval& i) { return i.begin == i.end; });
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  SkipList list;
  for (const Interval& i : intervals) {
    if (!list.intervals_.empty() && i.begin <= list.intervals_.back().end)
      list.intervals_.back().end = std::max(list.intervals_.back().end, i.end);
    else
      list.intervals_.push_back(i);
  }
  if (list.intervals_.size() > kSkipIntervalsMax)
    return invalid_argument("a skip list has at most " + number(kSkipIntervalsMax) +
                            " intervals, not " + number(list.intervals_.size()));
  std::uint64_t before = 0;
  for (const Interval& i : list.intervals_) {
    list.skipped_.push_back(before);
    before += i.end - i.begin;
  }
  return list;
}

Result<SkipList> SkipList::with(const SkipList& more) const {
  std::vector<Interval> all = intervals_;
  all.insert(all.end(), more.intervals_.begin(), more.intervals_.end());
  return make(std::move(all));
}

std::vector<Interval>::const_iterator SkipList::first_ending_after(std::uint64_t t) const {
  return std::upper_bound(intervals_.begin(), intervals_.end(), t,
                          [](std::uint64_t at, const Interval& i) { return at < i.end; });
}

std::uint64_t SkipList::next_kept(std::uint64_t t) const {
  const auto i = first_ending_after(t);
  return i != intervals_.end() && i->begin <= t ? i->end : t;
}

std::uint64_t SkipList::next_skipped(std::uint64_t t) const {
  const auto i = first_ending_after(t);
  if (i == intervals_.end()) return ~std::uint64_t{0};
  return std::max(t, i->begin);
}

std::uint64_t SkipList::skipped_before(std::uint64_t t) const {
  const auto i = first_ending_after(t);
  if (i == intervals_.end())
    return intervals_.empty() ? 0
                              : skipped_.back() + (intervals_.back().end - intervals_.back().begin);
  return skipped_[static_cast<std::size_t>(i - intervals_.begin())] +
         (t > i->begin ? t - i->begin : 0);
}

std::uint64_t SkipList::kept(std::uint64_t begin, std::uint64_t end) const {
  if (end <= begin) return 0;
  return end - begin - (skipped_before(end) - skipped_before(begin));
}

std::vector<std::uint8_t> RankShare::mask() const {
  std::vector<std::uint8_t> mask(positions.size(), 0);
  std::fill_n(mask.begin(), real, std::uint8_t{1});
  return mask;
}

std::vector<std::uint64_t> positions_of(const Step& step) {
  std::vector<std::uint64_t> positions;
  positions.reserve(step.count);
  for (const Interval& span : step.spans)
    for (std::uint64_t t = span.begin; t < span.end; ++t) positions.push_back(t);
  return positions;
}

Result<StepPlanner> StepPlanner::make(RunOrder order, StepSpec spec) {
  if (spec.global_batch == 0 || spec.global_batch > kGlobalBatchMax)
    return invalid_argument("the global batch must be 1 to " + number(kGlobalBatchMax) +
                            " samples, not " + number(spec.global_batch));
  if (spec.epoch_end == EpochEnd::kDrop && order.samples() < spec.global_batch)
    return invalid_argument("epoch_end 'drop' drops every epoch: it has " +
                            number(order.samples()) + " samples and the global batch takes " +
                            number(spec.global_batch) +
                            "; use a smaller batch, or 'carry', 'pad' or 'partial'");
  return StepPlanner(std::move(order), std::move(spec));
}

std::uint64_t StepPlanner::epoch_end_after(std::uint64_t t) const {
  return (t / order_.samples() + 1) * order_.samples();
}

// Every turn of the loop leaves an epoch that a skip interval touches, or is the first: whole
// skipped epochs are passed in one jump, so this ends after about two turns an interval.
Result<std::uint64_t> StepPlanner::settle(std::uint64_t t) const {
  while (t <= kPositionMax) {
    t = spec_.skip.next_kept(t);
    if (spec_.epoch_end != EpochEnd::kDrop) break;
    const std::uint64_t end = epoch_end_after(t);
    if (spec_.skip.kept(t, end) >= spec_.global_batch) break;
    t = end;
  }
  if (t > kPositionMax)
    return invalid_argument("run position " + number(t) + " is beyond the last one, " +
                            number(kPositionMax));
  return t;
}

Result<Step> StepPlanner::plan(std::uint64_t t) const {
  Step step;
  HR_ASSIGN(step.begin, settle(t));
  step.epoch = step.begin / order_.samples();
  const bool crosses = spec_.epoch_end == EpochEnd::kCarry;
  const std::uint64_t epoch_end = epoch_end_after(step.begin);
  const std::uint64_t stop = crosses ? ~std::uint64_t{0} : epoch_end;
  std::uint64_t at = step.begin;
  while (step.count < spec_.global_batch && at < stop) {
    const std::uint64_t left = spec_.global_batch - step.count;
    const std::uint64_t run = std::min(stop, spec_.skip.next_skipped(at)) - at;
    const std::uint64_t take = std::min(left, run);
    step.spans.push_back({at, at + take});
    step.count += take;
    at = spec_.skip.next_kept(at + take);
  }
  HR_CHECK(step.count > 0, "a settled position starts a step");
  HR_ASSIGN(step.next, settle(step.spans.back().end));
  step.ends_epoch = step.next >= epoch_end;
  return step;
}

Result<std::uint64_t> StepPlanner::steps_left(std::uint64_t t) const {
  HR_ASSIGN(const std::uint64_t from, settle(t));
  const std::uint64_t kept = spec_.skip.kept(from, epoch_end_after(from));
  if (spec_.epoch_end == EpochEnd::kDrop) return kept / spec_.global_batch;
  return divide_up(kept, spec_.global_batch);
}

Result<std::uint64_t> StepPlanner::steps_in_epoch(std::uint64_t epoch) const {
  if (epoch > kPositionMax / order_.samples())
    return invalid_argument("epoch " + number(epoch) + " is beyond run position " +
                            number(kPositionMax));
  const std::uint64_t from = epoch * order_.samples();
  const std::uint64_t kept = spec_.skip.kept(from, from + order_.samples());
  if (spec_.epoch_end == EpochEnd::kDrop) return kept / spec_.global_batch;
  return divide_up(kept, spec_.global_batch);
}

Status StepPlanner::check_world(std::uint64_t world) const {
  if (world == 0 || world > kWorldMax)
    return invalid_argument("the world size must be 1 to " + number(kWorldMax) + ", not " +
                            number(world));
  if (world > spec_.global_batch)
    return invalid_argument("a global batch of " + number(spec_.global_batch) +
                            " samples leaves some of " + number(world) +
                            " ranks without any; use a batch of at least one sample a rank");
  return Status::ok();
}

// The positions at places [from, from + count) when the step is sorted by (lane, position);
// counting how many positions each lane has makes this one pass over the step.
std::vector<std::uint64_t> StepPlanner::share_local(const Step& step, std::uint64_t from,
                                                    std::uint64_t count) const {
  std::vector<std::uint32_t> lanes(step.count);
  std::size_t filled = 0;
  for (const Interval& span : step.spans) {
    const std::size_t n = span.end - span.begin;
    order_.fill_lanes(span.begin, std::span(lanes).subspan(filled, n));
    filled += n;
  }
  std::vector<std::uint64_t> place(order_.spec().lanes + 1, 0);  // of a lane's next position
  for (const std::uint32_t lane : lanes) ++place[lane + 1];
  for (std::size_t lane = 1; lane < place.size(); ++lane) place[lane] += place[lane - 1];

  std::vector<std::uint64_t> mine;
  mine.reserve(count);
  std::size_t i = 0;
  for (const Interval& span : step.spans)
    for (std::uint64_t t = span.begin; t < span.end; ++t)
      if (place[lanes[i++]]++ - from < count) mine.push_back(t);
  return mine;
}

Result<RankShare> StepPlanner::assign(const Step& step, std::uint64_t rank,
                                      std::uint64_t world) const {
  HR_TRY(check_world(world));
  if (rank >= world)
    return invalid_argument("rank " + number(rank) + " is outside a world of " + number(world));
  const Interval places = share_of(step.count, rank, world);
  RankShare share;
  if (spec_.assignment == Assignment::kLocal) {
    share.positions = share_local(step, places.begin, places.end - places.begin);
  } else {
    std::uint64_t first = 0;  // place of the span's first position
    for (const Interval& span : step.spans) {
      const std::uint64_t end = first + (span.end - span.begin);
      for (std::uint64_t p = std::max(first, places.begin); p < std::min(end, places.end); ++p)
        share.positions.push_back(span.begin + (p - first));
      first = end;
    }
  }
  share.real = share.positions.size();
  share.weight = static_cast<double>(world) / static_cast<double>(step.count);
  if (spec_.epoch_end == EpochEnd::kPad) {
    const Interval full = share_of(spec_.global_batch, rank, world);
    const std::uint64_t copy = share.real > 0 ? share.positions.front() : step.begin;
    share.positions.resize(full.end - full.begin, copy);
  }
  return share;
}

}  // namespace headrace::order
