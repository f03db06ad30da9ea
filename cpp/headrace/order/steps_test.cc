#include "headrace/order/steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "headrace/order/random_data.h"

namespace headrace::order {
namespace {

using testing::HasSubstr;

constexpr EpochEnd kEpochEnds[] = {EpochEnd::kCarry, EpochEnd::kDrop, EpochEnd::kPad,
                                   EpochEnd::kPartial};

RunOrder plain_order(std::uint64_t samples) { return *RunOrder::make({}, {samples}); }

StepPlanner planner_of(RunOrder order, std::uint64_t batch, EpochEnd end,
                       std::vector<Interval> skip = {},
                       Assignment assignment = Assignment::kLocal) {
  auto planner = StepPlanner::make(std::move(order),
                                   {batch, end, assignment, *SkipList::make(std::move(skip))});
  EXPECT_TRUE(planner.is_ok()) << planner.status().to_string();
  return std::move(planner).value();
}

SkipList any_skip(std::uint64_t limit) {
  std::vector<Interval> intervals;
  const auto count = pick(0, 5);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto begin = pick(0, limit);
    intervals.push_back({begin, begin + pick(0, limit / 3 + 2)});
  }
  return *SkipList::make(std::move(intervals));
}

TEST(SkipList, SortsMergesAndIsIdempotent) {
  const auto list = SkipList::make({{7, 9}, {1, 3}, {3, 4}, {8, 12}, {20, 20}});
  ASSERT_TRUE(list.is_ok());
  EXPECT_EQ(list->intervals(), (std::vector<Interval>{{1, 4}, {7, 12}}));
  EXPECT_EQ(*list->with(*list), *list);
  EXPECT_EQ(*list->with({}), *list);
  const auto joined = list->with(*SkipList::make({{4, 7}}));
  EXPECT_EQ(joined->intervals(), (std::vector<Interval>{{1, 12}}));
}

TEST(SkipList, CountsWhatALoopCounts) {
  EXPECT_TRUE(rc::check([] {
    const SkipList list = any_skip(60);
    std::vector<bool> skipped(200, false);
    for (const Interval& i : list.intervals())
      for (std::uint64_t t = i.begin; t < i.end; ++t) skipped[t] = true;
    for (std::uint64_t a = 0; a < 100; ++a) {
      RC_ASSERT(list.contains(a) == skipped[a]);
      std::uint64_t next = a;
      while (skipped[next]) ++next;
      RC_ASSERT(list.next_kept(a) == next);
      std::uint64_t kept = 0;
      for (std::uint64_t b = a; b < 110; ++b) {
        RC_ASSERT(list.kept(a, b) == kept);
        kept += skipped[b] ? 0 : 1;
      }
    }
  }));
}

TEST(SkipList, RefusesNonsense) {
  EXPECT_THAT(SkipList::make({{5, 4}}).status().message(), HasSubstr("[5, 4)"));
  EXPECT_THAT(SkipList::make({{5, kPositionMax + 1}}).status().message(), HasSubstr("above"));
  std::vector<Interval> many;
  for (std::uint64_t i = 0; i <= kSkipIntervalsMax; ++i) many.push_back({2 * i, 2 * i + 1});
  EXPECT_THAT(SkipList::make(many).status().message(), HasSubstr("65536 intervals"));
}

TEST(Steps, EpochEndsDifferAsDocumented) {
  // Ten samples in batches of four: the third step tells them apart.
  const auto third = [](EpochEnd end) {
    const StepPlanner planner = planner_of(plain_order(10), 4, end);
    std::uint64_t t = 0;
    for (int i = 0; i < 2; ++i) t = planner.plan(t)->next;
    return *planner.plan(t);
  };
  EXPECT_EQ(third(EpochEnd::kCarry).spans, (std::vector<Interval>{{8, 12}}));
  EXPECT_EQ(third(EpochEnd::kDrop).spans, (std::vector<Interval>{{10, 14}}));
  EXPECT_EQ(third(EpochEnd::kPad).spans, (std::vector<Interval>{{8, 10}}));
  EXPECT_EQ(third(EpochEnd::kPartial).spans, (std::vector<Interval>{{8, 10}}));
  EXPECT_TRUE(third(EpochEnd::kCarry).ends_epoch);
  EXPECT_FALSE(third(EpochEnd::kDrop).ends_epoch);
  EXPECT_TRUE(third(EpochEnd::kPad).ends_epoch);
}

TEST(Steps, SkippedPositionsAreNeverTakenAndWholeEpochsArePassedAtOnce) {
  const StepPlanner planner =
      planner_of(plain_order(10), 4, EpochEnd::kDrop, {{2, 4}, {17, 3'000'000'000'005}});
  const Step first = *planner.plan(0);
  EXPECT_EQ(first.spans, (std::vector<Interval>{{0, 2}, {4, 6}}));
  EXPECT_EQ(planner.plan(first.next)->spans, (std::vector<Interval>{{6, 10}}));
  const Step second = *planner.plan(10);
  EXPECT_EQ(second.spans, (std::vector<Interval>{{10, 14}}));
  // Three are left of epoch 1, and five of the epoch in which the interval ends.
  EXPECT_EQ(second.next, 3'000'000'000'005U);
  EXPECT_EQ(planner.plan(second.next)->next, 3'000'000'000'010U);
  EXPECT_EQ(*planner.steps_in_epoch(1), 1U);
  EXPECT_EQ(*planner.steps_in_epoch(2), 0U);
}

TEST(Steps, CountsAgreeWithPlanning) {
  EXPECT_TRUE(rc::check([] {
    const auto n = pick(1, 80);
    const EpochEnd end =
        *rc::gen::elementOf(std::vector<EpochEnd>(std::begin(kEpochEnds), std::end(kEpochEnds)));
    const auto batch = pick(1, end == EpochEnd::kDrop ? n + 1 : 2 * n + 2);
    const SkipList skip = any_skip(3 * n);
    const StepPlanner planner = planner_of(plain_order(n), batch, end, skip.intervals());
    const auto start = pick(0, 3 * n);
    const std::uint64_t from = *planner.settle(start);
    RC_ASSERT(*planner.settle(from) == from);
    RC_ASSERT(*planner.plan(start) == *planner.plan(from));
    std::uint64_t steps = 0;
    for (std::uint64_t t = from; t / n == from / n; t = planner.plan(t)->next) {
      const Step step = *planner.plan(t);
      RC_ASSERT(step.ends_epoch == (step.next / n > t / n));
      ++steps;
    }
    RC_ASSERT(*planner.steps_left(start) == steps);
    if (from % n == 0) RC_ASSERT(*planner.steps_in_epoch(from / n) == steps);
  }));
}

TEST(Steps, RefuseWhatCannotBeMeant) {
  const auto error = [](std::uint64_t samples, std::uint64_t batch, EpochEnd end) {
    return StepPlanner::make(plain_order(samples), {batch, end, Assignment::kLocal, {}})
        .status()
        .message();
  };
  EXPECT_THAT(error(10, 0, EpochEnd::kCarry), HasSubstr("global batch"));
  EXPECT_THAT(error(10, kGlobalBatchMax + 1, EpochEnd::kCarry), HasSubstr("global batch"));
  EXPECT_THAT(error(10, 11, EpochEnd::kDrop), HasSubstr("drops every epoch"));
  EXPECT_EQ(error(10, 11, EpochEnd::kPad), "");
  const StepPlanner planner = planner_of(plain_order(10), 4, EpochEnd::kCarry);
  EXPECT_THAT(planner.plan(kPositionMax + 1).status().message(), HasSubstr("beyond"));
  EXPECT_THAT(planner.steps_in_epoch(~0ULL).status().message(), HasSubstr("beyond"));
  EXPECT_THAT(planner.check_world(0).message(), HasSubstr("world size"));
  EXPECT_THAT(planner.check_world(5).message(), HasSubstr("at least one sample a rank"));
  EXPECT_THAT(planner.check_world(16385).message(), HasSubstr("16384"));
  const Step step = *planner.plan(0);
  EXPECT_THAT(planner.assign(step, 4, 4).status().message(), HasSubstr("rank 4"));
  EXPECT_TRUE(planner.assign(step, 3, 4).is_ok());
}

// All that R10 promises about the shares of one step.
void check_shares(const StepPlanner& planner, const Step& step, std::uint64_t world) {
  std::vector<std::uint64_t> taken;
  std::set<std::size_t> sizes;
  double weights = 0;
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    const auto share = planner.assign(step, rank, world);
    ASSERT_TRUE(share.is_ok()) << share.status().to_string();
    const auto real_end = share->positions.begin() + static_cast<std::ptrdiff_t>(share->real);
    ASSERT_TRUE(std::is_sorted(share->positions.begin(), real_end));
    taken.insert(taken.end(), share->positions.begin(), real_end);
    sizes.insert(share->positions.size());
    weights += static_cast<double>(share->real) * share->weight;
    const auto mask = share->mask();
    ASSERT_EQ(mask.size(), share->positions.size());
    ASSERT_EQ(static_cast<std::uint64_t>(std::count(mask.begin(), mask.end(), 1)), share->real);
    if (planner.spec().epoch_end == EpochEnd::kPad) {
      const std::uint64_t batch = planner.spec().global_batch;
      ASSERT_EQ(share->positions.size(), batch / world + (rank < batch % world ? 1 : 0));
      const std::uint64_t copy = share->real > 0 ? share->positions[0] : step.begin;
      ASSERT_TRUE(std::all_of(real_end, share->positions.end(),
                              [&](std::uint64_t t) { return t == copy; }));
    } else {
      ASSERT_EQ(share->real, share->positions.size());
    }
  }
  std::sort(taken.begin(), taken.end());
  ASSERT_EQ(taken, positions_of(step));
  ASSERT_LE(*sizes.rbegin() - *sizes.begin(), 1U);
  ASSERT_NEAR(weights, static_cast<double>(world), 1e-6);
}

TEST(Shares, StepSetsAreEqualForEveryWorldSizeAndAssignment) {
  EXPECT_TRUE(rc::check([] {
    const TestData data = any_data(2000);
    const RunOrder order = data.make();
    const std::uint64_t n = order.samples();
    const auto batch = pick(1, std::min<std::uint64_t>(n, 300) + 1);
    const SkipList skip = any_skip(2 * n);
    for (const EpochEnd end : kEpochEnds)
      for (const Assignment how : {Assignment::kLocal, Assignment::kStrict}) {
        const StepPlanner planner = planner_of(order, batch, end, skip.intervals(), how);
        const Step step = *planner.plan(pick(0, 2 * n));
        for (const std::uint64_t world : {std::uint64_t{1}, batch / 2 + 1, batch})
          check_shares(planner, step, world);
      }
    RC_ASSERT(!testing::Test::HasFatalFailure());
  }));
}

TEST(Shares, ThousandsOfRanksGetTheirPart) {
  OrderSpec spec{.lanes = 256, .chunk_samples = 4, .window_samples = 65536, .source_name = ""};
  const RunOrder order = *RunOrder::make(spec, std::vector<std::uint64_t>(100, 1000));
  const StepPlanner planner = planner_of(order, 20000, EpochEnd::kPartial);
  for (std::uint64_t rank : {0U, 1U, 8000U, 16383U}) {
    const auto share = planner.assign(*planner.plan(0), rank, 16384);
    ASSERT_TRUE(share.is_ok());
    EXPECT_EQ(share->real, rank < 20000 % 16384 ? 2U : 1U);
  }
}

// The point of the local assignment: with 8 lanes for 2 ranks, a rank reads half of the lanes.
TEST(Shares, LocalAssignmentKeepsRanksOnTheirLanes) {
  OrderSpec spec{.lanes = 16, .chunk_samples = 4, .window_samples = 1600, .source_name = ""};
  const RunOrder order = *RunOrder::make(spec, {16 * 300});
  const StepPlanner planner = planner_of(order, 64, EpochEnd::kDrop);
  std::vector<std::set<std::uint32_t>> lanes(2);
  for (std::uint64_t t = 0; t < order.samples() * 2; t = planner.plan(t)->next)
    for (std::uint64_t rank = 0; rank < 2; ++rank) {
      const auto share = planner.assign(*planner.plan(t), rank, 2);
      for (const std::uint64_t position : share->positions)
        lanes[rank].insert(order.lane_of(position));
    }
  EXPECT_EQ(lanes[0], (std::set<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(lanes[1], (std::set<std::uint32_t>{8, 9, 10, 11, 12, 13, 14, 15}));
}

// What a cluster does: run some steps, checkpoint now and then, die, resume elsewhere.
struct Consumed {
  std::map<std::uint64_t, int> times;  // of each run position whose step was committed
  std::uint64_t next = 0;
};

Consumed run_with_kills(const RunOrder& order, std::uint64_t batch, EpochEnd end,
                        const SkipList& skip, std::uint64_t stop) {
  Consumed committed;
  while (committed.next < stop) {
    Consumed running = committed;
    const Assignment how = *rc::gen::element(Assignment::kLocal, Assignment::kStrict);
    const StepPlanner planner = planner_of(order, batch, end, skip.intervals(), how);
    const auto world = pick(1, std::min<std::uint64_t>(64, batch) + 1);
    const auto steps_to_live = pick(1, 12);
    const auto checkpoint_every = pick(1, 5);
    for (std::uint64_t step_count = 1; step_count <= steps_to_live && running.next < stop;
         ++step_count) {
      const Step step = *planner.plan(running.next);
      for (std::uint64_t rank = 0; rank < world; ++rank) {
        const RankShare share = *planner.assign(step, rank, world);
        for (std::uint64_t i = 0; i < share.real; ++i) ++running.times[share.positions[i]];
      }
      running.next = step.next;
      if (step_count % checkpoint_every == 0 || running.next >= stop) committed = running;
    }
  }
  return committed;
}

TEST(Resume, DeliversEverySampleOnceWhateverDiesAndOnWhateverWorld) {
  EXPECT_TRUE(rc::check([] {
    const TestData data = any_data(400);
    const RunOrder order = data.make();
    const std::uint64_t n = order.samples();
    const auto batch = pick(1, std::min<std::uint64_t>(n, 96) + 1);
    const SkipList skip = *rc::gen::arbitrary<bool>() ? any_skip(2 * n) : SkipList();
    for (const EpochEnd end : kEpochEnds) {
      const Consumed done = run_with_kills(order, batch, end, skip, 2 * n);
      std::vector<std::map<std::uint64_t, int>> epochs(2);
      for (const auto& [t, times] : done.times) {
        RC_ASSERT(times == 1);
        RC_ASSERT(!skip.contains(t));
        if (t < 2 * n) ++epochs[t / n][order.sample_at(t).ordinal];
      }
      for (std::uint64_t e = 0; e < 2; ++e) {
        const std::uint64_t kept = skip.kept(e * n, (e + 1) * n);
        const std::uint64_t used = end == EpochEnd::kDrop ? kept / batch * batch : kept;
        RC_ASSERT(epochs[e].size() == used);
        for (const auto& [ordinal, times] : epochs[e]) RC_ASSERT(times == 1);
      }
    }
  }));
}

TEST(Resume, TheBatchMayChangeAtAnyStepWithoutLossOrRepeat) {
  EXPECT_TRUE(rc::check([] {
    const TestData data = any_data(300);
    const RunOrder order = data.make();
    const std::uint64_t n = order.samples();
    for (const EpochEnd end : {EpochEnd::kCarry, EpochEnd::kPad, EpochEnd::kPartial}) {
      std::uint64_t t = 0;
      std::uint64_t expected = 0;
      while (t < 3 * n) {
        const auto batch = pick(1, 2 * n + 1);
        const Step step = *planner_of(order, batch, end).plan(t);
        for (const std::uint64_t position : positions_of(step)) RC_ASSERT(position == expected++);
        t = step.next;
        RC_ASSERT(t == expected);
      }
    }
  }));
}

}  // namespace
}  // namespace headrace::order
