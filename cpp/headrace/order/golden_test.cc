// The vectors under tests/golden/order are written by the slow Python reference, which shares no
// code with this library.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "headrace/base/sha256.h"
#include "headrace/order/permutation.h"
#include "headrace/order/steps.h"

namespace headrace::order {
namespace {

using Words = std::vector<std::string>;

// The lines of a golden file as words, without comments.
std::vector<Words> read_golden(const std::string& name) {
  std::ifstream file(std::string(HEADRACE_GOLDEN_DIR) + "/order/" + name);
  EXPECT_TRUE(file.is_open()) << name;
  std::vector<Words> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream stream(line);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    lines.push_back(std::move(words));
  }
  EXPECT_GT(lines.size(), 10U) << name;
  return lines;
}

std::uint64_t number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

// Sizes from words[from] on, where COUNTxSIZE repeats one.
std::vector<std::uint64_t> sizes_of(const Words& words, std::size_t from) {
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = from; i < words.size(); ++i) {
    const std::size_t times = words[i].find('x');
    if (times == std::string::npos)
      sizes.push_back(number(words[i]));
    else
      sizes.insert(sizes.end(), number(words[i].substr(0, times)),
                   number(words[i].substr(times + 1)));
  }
  return sizes;
}

struct Case {
  std::string title;
  OrderSpec spec;
  std::vector<std::uint64_t> shards;
  std::vector<std::vector<std::uint64_t>> units;
  std::vector<Words> facts;

  RunOrder make() const {
    auto order = RunOrder::make(spec, shards, units);
    EXPECT_TRUE(order.is_ok()) << title << ": " << order.status().to_string();
    return std::move(order).value();
  }
};

std::map<std::string, Case> read_cases() {
  std::map<std::string, Case> cases;
  Case one;
  for (const Words& words : read_golden("order.txt")) {
    const std::string& what = words[0];
    if (what == "case")
      one = Case{words[1], {}, {}, {}, {}};
    else if (what == "seed")
      one.spec.seed = number(words[1]);
    else if (what == "name")
      one.spec.source_name = words[1] == "-" ? "" : words[1];
    else if (what == "shuffle")
      one.spec.shuffle = words[1] == "1";
    else if (what == "lanes")
      one.spec.lanes = static_cast<std::uint32_t>(number(words[1]));
    else if (what == "chunk")
      one.spec.chunk_samples = number(words[1]);
    else if (what == "window")
      one.spec.window_samples = number(words[1]);
    else if (what == "layout")
      one.spec.layout = *layout_from_name(words[1]);
    else if (what == "shards")
      one.shards = sizes_of(words, 1);
    else if (what == "units")
      one.units.push_back(sizes_of(words, 2));
    else if (what == "end")
      cases[one.title] = one;
    else
      one.facts.push_back(words);
  }
  return cases;
}

TEST(Golden, KeysAreThoseOfTheReference) {
  for (const Words& w : read_golden("keys.txt")) {
    ASSERT_EQ(w.size(), 12U);
    const Key key = KeySpace(number(w[1]), w[2] == "-" ? "" : w[2]).key(w[3], number(w[4]));
    EXPECT_EQ(key.a, number(w[5]));
    EXPECT_EQ(key.b, number(w[6]));
    EXPECT_EQ(word(key, 0), number(w[7]));
    EXPECT_EQ(word(key, 1), number(w[8]));
    EXPECT_EQ(below(key, 2, 1000), number(w[9]));
    EXPECT_EQ(sub(key, 3), (Key{number(w[10]), number(w[11])}));
  }
}

TEST(Golden, PermutationsAreThoseOfTheReference) {
  Permutation pi;
  for (const Words& w : read_golden("permutation.txt")) {
    if (w[0] == "permutation") {
      pi = Permutation(Key{number(w[1]), number(w[2])}, number(w[3]));
      continue;
    }
    EXPECT_EQ(pi.forward(number(w[1])), number(w[2])) << "n " << pi.size();
    EXPECT_EQ(pi.inverse(number(w[2])), number(w[1])) << "n " << pi.size();
  }
}

TEST(Golden, OrdersAreThoseOfTheReference) {
  for (const auto& [title, one] : read_cases()) {
    SCOPED_TRACE(title);
    const RunOrder order = one.make();
    const std::uint32_t scale = order.spec().lanes / order.lanes();
    for (const Words& w : one.facts) {
      if (w[0] == "at") {
        const std::uint64_t t = number(w[1]);
        const Placement at = order.sample_at(t);
        EXPECT_EQ(at.shard, number(w[2])) << "t " << t;
        EXPECT_EQ(at.sample, number(w[3])) << "t " << t;
        EXPECT_EQ(order.lane_of(t), number(w[4]) * (one.spec.shuffle ? scale : 0)) << "t " << t;
        EXPECT_EQ(order.position_of(at.ordinal, t / order.samples()), t);
      } else if (w[0] == "epoch") {
        std::vector<Placement> all(order.samples());
        order.fill(number(w[1]) * order.samples(), all);
        std::string text;
        for (const Placement& at : all)
          text += std::to_string(at.shard) + " " + std::to_string(at.sample) + "\n";
        EXPECT_EQ(to_hex(sha256(as_bytes(text))), w[2]) << "epoch " << w[1];
      } else {
        ASSERT_EQ(w[0], "lanes-in-use");
        EXPECT_EQ(order.lanes(), number(w[1]));
      }
    }
  }
}

SkipList skip_of(const std::string& text) {
  std::vector<Interval> intervals;
  std::istringstream stream(text == "-" ? "" : text);
  for (std::string pair; std::getline(stream, pair, ',');) {
    const std::size_t colon = pair.find(':');
    intervals.push_back({number(pair.substr(0, colon)), number(pair.substr(colon + 1))});
  }
  return *SkipList::make(intervals);
}

StepPlanner planner_of(RunOrder order, std::uint64_t batch, const std::string& epoch_end,
                       const std::string& assignment, SkipList skip) {
  StepSpec spec{.global_batch = batch,
                .epoch_end = *epoch_end_from_name(epoch_end),
                .assignment = *assignment_from_name(assignment),
                .skip = std::move(skip)};
  auto planner = StepPlanner::make(std::move(order), std::move(spec));
  EXPECT_TRUE(planner.is_ok()) << planner.status().to_string();
  return std::move(planner).value();
}

TEST(Golden, StepsAndSharesAreThoseOfTheReference) {
  const auto cases = read_cases();
  std::optional<StepPlanner> planner;
  std::uint64_t t = 0;
  std::uint64_t world = 0;
  std::uint64_t rank = 0;
  Words context;
  for (const Words& w : read_golden("steps.txt")) {
    if (w[0] == "plan") {
      context = w;
      auto order = RunOrder::make({}, {number(w[1])});
      planner = planner_of(*order, number(w[2]), w[3], "local", skip_of(w[4]));
      t = 0;
    } else if (w[0] == "step") {
      const auto step = planner->plan(t);
      ASSERT_TRUE(step.is_ok());
      const auto positions = positions_of(*step);
      ASSERT_EQ(positions.size(), step->count);
      EXPECT_EQ((std::vector{step->begin, step->count, positions.back(), step->next}),
                (std::vector{number(w[1]), number(w[2]), number(w[3]), number(w[4])}))
          << testing::PrintToString(context) << " at " << t;
      EXPECT_EQ(step->begin, positions.front());
      t = step->next;
    } else if (w[0] == "assign") {
      context = w;
      planner = planner_of(cases.at(w[1]).make(), number(w[2]), w[3], w[4], {});
      t = number(w[5]);
      world = number(w[6]);
      rank = 0;
    } else {
      const auto share = planner->assign(*planner->plan(t), rank++, world);
      ASSERT_TRUE(share.is_ok());
      EXPECT_EQ(share->real, number(w[1]));
      EXPECT_EQ(share->positions, sizes_of(w, 2)) << testing::PrintToString(context);
    }
  }
}

}  // namespace
}  // namespace headrace::order
