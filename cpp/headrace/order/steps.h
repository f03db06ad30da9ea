// Steps over the run order (R9, R10): which positions a step takes, and which rank takes which.
// Thread-safety: immutable after construction; all methods may be called from any thread.
// Ownership: values; a StepPlanner shares the table of its RunOrder.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/base/status.h"
#include "headrace/order/run_order.h"

namespace headrace::order {

// Positions above this are refused: no run gets there, so such a number is a mistake.
inline constexpr std::uint64_t kPositionMax = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kGlobalBatchMax = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kWorldMax = 16384;
inline constexpr std::uint64_t kSkipIntervalsMax = 65536;

// What a step does at the end of an epoch.
enum class EpochEnd : std::uint8_t {
  kCarry = 0,    // goes on with the next epoch
  kDrop = 1,     // a rest smaller than the batch is not used
  kPad = 2,      // the last batch is filled with copies that a mask marks
  kPartial = 3,  // the last batch is smaller
};
std::string_view epoch_end_name(EpochEnd end);  // "carry", "drop", "pad", "partial"
std::optional<EpochEnd> epoch_end_from_name(std::string_view name);

// How a step is divided among ranks: by lane, so that ranks keep reading their lanes, or by
// position.
enum class Assignment : std::uint8_t { kLocal = 0, kStrict = 1 };
std::string_view assignment_name(Assignment assignment);  // "local", "strict"
std::optional<Assignment> assignment_from_name(std::string_view name);

// Run positions [begin, end).
struct Interval {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// Run positions that no step takes: sorted, disjoint, not touching. Adding an interval twice
// changes nothing.
class SkipList {
 public:
  SkipList() = default;
  // Any order, overlaps allowed, empty intervals ignored.
  static Result<SkipList> make(std::vector<Interval> intervals);
  // Everything that this list or `more` skips.
  Result<SkipList> with(const SkipList& more) const;

  const std::vector<Interval>& intervals() const { return intervals_; }
  bool contains(std::uint64_t t) const { return next_kept(t) != t; }
  // The first position >= t that is not skipped.
  std::uint64_t next_kept(std::uint64_t t) const;
  // The first position >= t that is skipped; the largest integer when there is none.
  std::uint64_t next_skipped(std::uint64_t t) const;
  // How many positions of [begin, end) are not skipped.
  std::uint64_t kept(std::uint64_t begin, std::uint64_t end) const;
  friend bool operator==(const SkipList& a, const SkipList& b) {
    return a.intervals_ == b.intervals_;
  }

 private:
  std::vector<Interval>::const_iterator first_ending_after(std::uint64_t t) const;
  std::uint64_t skipped_before(std::uint64_t t) const;

  std::vector<Interval> intervals_;
  std::vector<std::uint64_t> skipped_;  // positions in all intervals before this one
};

struct StepSpec {
  std::uint64_t global_batch = 1;  // samples a step takes over all ranks
  EpochEnd epoch_end = EpochEnd::kDrop;
  Assignment assignment = Assignment::kLocal;
  SkipList skip;
};

// One step: `count` positions (never zero) in ascending intervals.
struct Step {
  std::uint64_t begin = 0;  // its first position
  std::uint64_t next = 0;   // where the next step starts: the state after consuming this one
  std::uint64_t epoch = 0;  // of `begin`
  std::uint64_t count = 0;
  std::vector<Interval> spans;
  bool ends_epoch = false;  // `next` lies in a later epoch
  friend bool operator==(const Step&, const Step&) = default;
};

// What one rank takes of a step.
struct RankShare {
  std::vector<std::uint64_t> positions;  // ascending, then the padding
  std::uint64_t real = 0;                // positions[real ..] are padding; the mask is i < real
  double weight = 1;                     // of a real row, so that the mean over ranks of weighted
                                         // sums is the mean over the step: world / Step::count
  std::vector<std::uint8_t> mask() const;
};

class StepPlanner {
 public:
  static Result<StepPlanner> make(RunOrder order, StepSpec spec);

  const RunOrder& order() const { return order_; }
  const StepSpec& spec() const { return spec_; }

  // Where a run whose next position is t really goes on: past skipped positions and, with drop,
  // past a rest that is too small. plan(t) equals plan(settle(t)).
  Result<std::uint64_t> settle(std::uint64_t t) const;
  Result<Step> plan(std::uint64_t t) const;

  // Steps from t until the epoch of settle(t) is over; with carry the last one may reach into the
  // next epoch and counts.
  Result<std::uint64_t> steps_left(std::uint64_t t) const;
  // Steps of a run that enters the epoch at its first position.
  Result<std::uint64_t> steps_in_epoch(std::uint64_t epoch) const;

  // World sizes are 1 .. kWorldMax and at most the global batch.
  Status check_world(std::uint64_t world) const;
  // The share of `rank`; shares of all ranks have sizes that differ by at most one.
  Result<RankShare> assign(const Step& step, std::uint64_t rank, std::uint64_t world) const;

 private:
  StepPlanner(RunOrder order, StepSpec spec) : order_(std::move(order)), spec_(std::move(spec)) {}
  std::uint64_t epoch_end_after(std::uint64_t t) const;
  std::vector<std::uint64_t> share_local(const Step& step, std::uint64_t from,
                                         std::uint64_t count) const;

  RunOrder order_;
  StepSpec spec_;
};

// All positions of the step, ascending.
std::vector<std::uint64_t> positions_of(const Step& step);

}  // namespace headrace::order
