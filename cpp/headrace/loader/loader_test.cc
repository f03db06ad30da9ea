#include "headrace/loader/loader.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "headrace/loader/test_world.h"

namespace headrace::loader {
namespace {

using std::chrono::milliseconds;
using Epoch = std::vector<std::vector<std::uint64_t>>;

LoaderOptions small_options(std::uint64_t global_batch = 32) {
  LoaderOptions options;
  options.global_batch = global_batch;
  options.order.seed = 5;
  options.order.lanes = 4;
  options.order.chunk = order::Amount::samples(8);
  options.order.window = order::Amount::samples(128);
  options.epoch_end = order::EpochEnd::kPartial;
  options.memory = 8 << 20;
  return options;
}

WorldOptions remote(bool is_virtual = true) {
  WorldOptions world;
  world.is_virtual = is_virtual;
  world.store.can_peek = false;
  world.store.latency = is_virtual ? milliseconds(20) : milliseconds(1);
  return world;
}

std::vector<std::uint64_t> flat(const Epoch& epoch) {
  std::vector<std::uint64_t> out;
  for (const auto& batch : epoch) out.insert(out.end(), batch.begin(), batch.end());
  return out;
}

std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<std::uint64_t> first_numbers(std::uint64_t n) {
  std::vector<std::uint64_t> out(n);
  std::iota(out.begin(), out.end(), std::uint64_t{0});
  return out;
}

TEST(Loader, DeliversEverySampleOncePerEpochInAnotherOrder) {
  TestWorld world;
  const auto loader = *world.loader(small_options());
  const Epoch first = *read_epoch(*loader);
  const Epoch second = *read_epoch(*loader);
  EXPECT_EQ(sorted(flat(first)), first_numbers(1000));
  EXPECT_EQ(sorted(flat(second)), first_numbers(1000));
  EXPECT_NE(flat(first), flat(second));
  EXPECT_EQ(first.size(), 32U);
}

TEST(Loader, GivesTheSameBatchesOnThreadsInVirtualTimeLocalAndRemote) {
  std::vector<Epoch> epochs;
  for (const bool is_virtual : {true, false}) {
    WorldOptions local;
    local.is_virtual = is_virtual;
    for (const WorldOptions& options : {local, remote(is_virtual)}) {
      TestWorld world(options);
      const auto loader = *world.loader(small_options());
      EXPECT_EQ(loader->plan().is_local, options.store.can_peek);
      epochs.push_back(*read_epoch(*loader));
      epochs.push_back(*read_epoch(*loader));
    }
  }
  for (std::size_t i = 2; i < epochs.size(); ++i) EXPECT_EQ(epochs[i], epochs[i % 2]) << i;
}

TEST(Loader, LogsShuffleQualityWhenItStarts) {
  TestWorld world;
  const auto loader = *world.loader(small_options());
  ASSERT_EQ(world.log().size(), 1U);
  EXPECT_NE(world.log()[0].find("loader.start: "), std::string::npos);
  EXPECT_NE(world.log()[0].find("1000 samples, 32 a step over 1 ranks, DEFF "), std::string::npos)
      << world.log()[0];
}

TEST(Loader, WithoutShufflingGivesStoredOrder) {
  TestWorld world;
  LoaderOptions options = small_options();
  options.order.shuffle = false;
  const auto loader = *world.loader(options);
  EXPECT_EQ(flat(*read_epoch(*loader)), first_numbers(1000));
}

TEST(Loader, ReadsViewsAndNothingElse) {
  TestWorld world(remote());
  const auto [train, held_out] = world.dataset()->all().split(0.7, 3);
  const auto loader = *world.loader(train, small_options());
  std::vector<std::uint64_t> expected;
  for (std::uint64_t i = 0; i < train.size(); ++i) expected.push_back(train.at(i).ordinal);
  EXPECT_EQ(sorted(flat(*read_epoch(*loader))), expected);
  EXPECT_EQ(sorted(flat(*read_epoch(*loader))), expected);
}

TEST(Loader, PadsWithAMaskAndKeepsRanksEven) {
  TestWorld world;
  LoaderOptions options = small_options(30);
  options.epoch_end = order::EpochEnd::kPad;
  options.world = 4;
  std::vector<std::uint64_t> seen;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    options.rank = rank;
    const auto loader = *world.loader(options);
    std::uint64_t batches = 0;
    while (true) {
      const auto batch = *loader->next();
      ++batches;
      EXPECT_TRUE(batch->rows == 7 || batch->rows == 8);
      const auto rows = rows_of(*batch);
      seen.insert(seen.end(), rows.begin(), rows.end());
      if (batch->ends_epoch) break;
    }
    EXPECT_EQ(batches, 34U);
  }
  EXPECT_EQ(sorted(seen), first_numbers(1000));
}

TEST(Loader, PartialStepsWeighRowsSoThatTheMeanIsTheStepsMean) {
  TestWorld world;
  LoaderOptions options = small_options(300);
  options.world = 3;
  double weight = 0;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    options.rank = rank;
    const auto loader = *world.loader(options);
    for (int i = 0; i < 3; ++i) EXPECT_EQ((*loader->next())->rows, 100U);
    const auto last = *loader->next();
    EXPECT_TRUE(last->ends_epoch);
    weight += last->weight * static_cast<double>(last->rows);
  }
  EXPECT_NEAR(weight, 3.0, 1e-9);
}

TEST(Loader, CarryLetsABatchSpanTwoEpochs) {
  TestWorld world;
  LoaderOptions options = small_options(300);
  options.epoch_end = order::EpochEnd::kCarry;
  const auto loader = *world.loader(options);
  std::map<std::uint64_t, int> times;
  for (int i = 0; i < 10; ++i) {
    for (const std::uint64_t row : rows_of(**loader->next())) ++times[row];
  }
  ASSERT_EQ(times.size(), 1000U);
  for (const auto& [row, n] : times) EXPECT_EQ(n, 3) << row;
}

TEST(Loader, StateIsThePositionConsumedNotTheOnePrefetched) {
  TestWorld world;
  const auto loader = *world.loader(small_options());
  EXPECT_EQ(loader->state().next, 0U);
  (void)*loader->next();
  (void)*loader->next();
  EXPECT_EQ(loader->position(), 64U);
  EXPECT_EQ(loader->state().next, 64U);
}

TEST(Loader, RefusesAStateOfOtherDataOrOrder) {
  TestWorld world;
  WorldOptions other_options;
  other_options.samples = 999;
  TestWorld other(other_options);
  const auto loader = *world.loader(small_options());
  const auto foreign = *other.loader(small_options());
  const Status data = loader->load_state(foreign->state());
  EXPECT_EQ(data.code(), Code::kInvalidArgument) << data.to_string();
  LoaderOptions options = small_options();
  options.order.seed = 6;
  const auto reseeded = *world.loader(options);
  const Status seed = loader->load_state(reseeded->state());
  EXPECT_NE(seed.message().find("seed"), std::string::npos) << seed.to_string();
  const auto view = *world.loader(world.dataset()->all().take(900), small_options());
  EXPECT_FALSE(loader->load_state(view->state()).is_ok());
}

TEST(Loader, AdoptsTheSkipListOfAState) {
  TestWorld world;
  const auto loader = *world.loader(small_options());
  order::OrderState state = loader->state();
  state.skip = *order::SkipList::make({{32, 96}});
  (void)*loader->next();
  ASSERT_TRUE(loader->load_state(state).is_ok());
  EXPECT_EQ(flat(*read_epoch(*loader)).size(), 1000U - 64U);
  EXPECT_EQ(loader->state().skip, state.skip);
}

TEST(Loader, SeekDropsWhatWasReadAhead) {
  TestWorld world(remote());
  const auto loader = *world.loader(small_options());
  const Epoch whole = *read_epoch(*loader);
  ASSERT_TRUE(loader->seek(32 * 5).is_ok());
  EXPECT_EQ(*read_epoch(*loader), Epoch(whole.begin() + 5, whole.end()));
  ASSERT_TRUE(loader->seek(0).is_ok());
  EXPECT_EQ(*read_epoch(*loader), whole);
}

// Kills a run of some world size at random places and resumes it on another, time and again: the
// epoch comes out exactly once, whatever the end of epochs.
TEST(LoaderProperty, ExactlyOnceAcrossKillsAndWorldSizes) {
  rc::check([] {
    WorldOptions options;
    options.samples = *rc::gen::inRange<std::uint64_t>(1, 400);
    options.shard_bytes = *rc::gen::element<std::uint64_t>(400, 2000, 8192);
    options.store.can_peek = *rc::gen::arbitrary<bool>();
    TestWorld world(options);
    LoaderOptions run = small_options(*rc::gen::inRange<std::uint64_t>(1, 70));
    run.order.seed = *rc::gen::arbitrary<std::uint64_t>();
    run.epoch_end = *rc::gen::element(order::EpochEnd::kPad, order::EpochEnd::kPartial,
                                      order::EpochEnd::kDrop, order::EpochEnd::kCarry);
    run.assignment = *rc::gen::element(order::Assignment::kLocal, order::Assignment::kStrict);
    if (run.epoch_end == order::EpochEnd::kDrop) RC_PRE(run.global_batch <= options.samples);
    order::OrderState state;
    bool is_resumed = false;
    std::map<std::uint64_t, int> times;
    std::uint64_t end = 0;
    for (int life = 0; life < 4; ++life) {
      run.world = *rc::gen::inRange<std::uint32_t>(
          1, static_cast<std::uint32_t>(std::min<std::uint64_t>(64, run.global_batch) + 1));
      const auto steps = *rc::gen::inRange<int>(0, 6);
      std::vector<std::unique_ptr<Loader>> ranks;
      for (run.rank = 0; run.rank < run.world; ++run.rank) {
        ranks.push_back(std::move(world.loader(run)).value());
        if (is_resumed) RC_ASSERT(ranks.back()->load_state(state).is_ok());
      }
      for (int step = 0; step < steps; ++step) {
        std::set<std::uint64_t> next;
        for (const auto& rank : ranks) {
          const auto batch = std::move(rank->next()).value();
          next.insert(batch->next);
          for (const std::uint64_t row : rows_of(*batch)) ++times[row];
        }
        RC_ASSERT(next.size() == 1U);
        end = *next.begin();
      }
      state = ranks.front()->state();
      is_resumed = true;
      RC_ASSERT(state.next == end);
    }
    if (run.epoch_end == order::EpochEnd::kDrop) {
      const std::uint64_t kept = options.samples / run.global_batch * run.global_batch;
      std::uint64_t total = 0;
      for (const auto& [row, n] : times) total += static_cast<std::uint64_t>(n);
      RC_ASSERT(total == end / options.samples * kept + end % options.samples);
      return;
    }
    const auto whole = static_cast<int>(end / options.samples);
    std::uint64_t beyond = 0;
    for (std::uint64_t row = 0; row < options.samples; ++row) {
      RC_ASSERT(times[row] == whole || times[row] == whole + 1);
      beyond += static_cast<std::uint64_t>(times[row] - whole);
    }
    RC_ASSERT(beyond == end % options.samples);
  });
}

class Doubler final : public ExternalStage {
 public:
  std::size_t credits() const override { return 2; }
  void submit(SampleChunk chunk, StageDone done) override {
    auto sum = std::make_shared<std::int64_t>(0);
    StageOutput out;
    for (std::uint64_t row = 0; row < chunk.batch->rows; ++row) {
      const std::int64_t index = int_at(chunk.batch->index, row);
      if (fails_on == index) out.failed.emplace_back(row, invalid_argument("told to fail"));
      *sum += 2 * index;
    }
    out.value = sum;
    done(std::move(out));
  }
  std::int64_t fails_on = -1;
};

TEST(Loader, ExternalStagesSeeDecodedRowsAndMayFailSingleOnes) {
  TestWorld world;
  const auto stage = std::make_shared<Doubler>();
  const auto loader = *world.loader(small_options(), stage);
  const auto batch = *loader->next();
  std::int64_t sum = 0;
  for (const std::uint64_t row : rows_of(*batch)) sum += 2 * static_cast<std::int64_t>(row);
  EXPECT_EQ(*std::static_pointer_cast<std::int64_t>(batch->external), sum);

  stage->fails_on = 123;
  LoaderOptions options = small_options();
  options.bad_samples = BadSamples::kSkip;
  const auto skipping = *world.loader(options, stage);
  EXPECT_EQ(flat(*read_epoch(*skipping)).size(), 999U);
  options.bad_samples = BadSamples::kRaise;
  const auto raising = *world.loader(options, stage);
  const auto failed = read_epoch(*raising);
  EXPECT_NE(failed.status().message().find("number 123"), std::string::npos)
      << failed.status().to_string();
}

TEST(Loader, RandomAccessFindsTheSameSamples) {
  for (const bool can_peek : {true, false}) {
    WorldOptions options = remote();
    options.store.can_peek = can_peek;
    TestWorld world(options);
    for (const std::uint64_t i : {0, 1, 500, 999}) {
      const LoadedSample sample = *world.dataset()->read(i);
      EXPECT_EQ(as_text(sample.values[1].bytes), sample_text(i));
    }
    EXPECT_EQ(world.dataset()->read(1000).status().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace headrace::loader
