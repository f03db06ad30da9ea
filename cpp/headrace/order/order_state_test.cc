#include "headrace/order/order_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headrace::order {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

OrderState sample_state() {
  OrderState state;
  state.source = {"", std::string(64, 'a'), 1'281'167};
  state.order.seed = ~0ULL;
  state.order.chunk_samples = 9;
  state.order.window_samples = 19'000;
  state.epoch_end = EpochEnd::kPad;
  state.global_batch = 1024;
  state.skip = *SkipList::make({{5000, 6000}});
  state.next = 123'456'789;
  state.library_version = "0.1.0";
  return state;
}

constexpr std::string_view kSampleText =
    R"({"assignment": "local", "epoch_end": "pad", "global_batch": 1024, "library": "0.1.0", )"
    R"("next": 123456789, "order": {"chunk": 9, "lanes": 64, "layout": "chunk", )"
    R"("name": "headrace-1", "seed": 18446744073709551615, "shuffle": true, "window": 19000}, )"
    R"("skip": [[5000, 6000]], "sources": [{"identity": )"
    R"("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "name": "", )"
    R"("samples": 1281167}], "version": 1})";

// kSampleText with one piece replaced.
std::string altered(std::string_view from, std::string_view to) {
  std::string text(kSampleText);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(OrderState, IsOneCanonicalLineBelowOneKilobyte) {
  const auto text = sample_state().to_json();
  ASSERT_TRUE(text.is_ok()) << text.status().to_string();
  EXPECT_EQ(*text, kSampleText);
  EXPECT_LT(text->size(), 1024U);
}

TEST(OrderState, ComesBackAsItWas) {
  OrderState state = sample_state();
  state.source.name = state.order.source_name = "na\xc3\xafve \"web\"";
  state.order.layout = Layout::kUnit;
  state.order.shuffle = false;
  state.assignment = Assignment::kStrict;
  for (const EpochEnd end :
       {EpochEnd::kCarry, EpochEnd::kDrop, EpochEnd::kPad, EpochEnd::kPartial}) {
    state.epoch_end = end;
    const auto back = OrderState::from_json(*state.to_json());
    ASSERT_TRUE(back.is_ok()) << back.status().to_string();
    EXPECT_EQ(*back, state);
  }
}

TEST(OrderState, MembersMayComeInAnyOrderAndSpacing) {
  const auto text = R"({"version":1,"next":0,"skip":[],"sources":[{"samples":5,"name":"",
      "identity":"0123456789abcdef"}],"order":{"seed":0,"shuffle":false,"lanes":1,"chunk":1,
      "window":1,"layout":"unit","name":"headrace-1"},"epoch_end":"carry","assignment":"strict",
      "global_batch":1,"library":"9.9.9"})";
  const auto state = OrderState::from_json(text);
  ASSERT_TRUE(state.is_ok()) << state.status().to_string();
  EXPECT_EQ(state->library_version, "9.9.9");
}

TEST(OrderState, RefusesHostileTextNamingTheField) {
  struct Hostile {
    std::string text;
    std::string expected;
  };
  const std::vector<Hostile> table = {
      {"", "state"},
      {"{", "state"},
      {"null", "version"},
      {"[]", "version"},
      {"{}", "'version' is missing"},
      {std::string(kSampleText) + "x", "state"},
      {std::string(100'000, '['), "state"},
      {altered("\"version\": 1", "\"version\": 2"), "'version' is 2"},
      {altered("\"version\": 1", "\"version\": \"1\""), "'version'"},
      {altered("\"version\": 1", "\"version\": 1, \"more\": 0"), "'more' is unknown"},
      {altered("\"next\": 123456789, ", ""), "'next' is missing"},
      {altered("123456789", "-1"), "'next'"},
      {altered("123456789", "1e6"), "'next'"},
      {altered("123456789", "NaN"), "state"},
      {altered("123456789", "1.5"), "'next'"},
      {altered("123456789", "true"), "'next'"},
      {altered("123456789", "4611686018427387905"), "'next'"},
      {altered("123456789", "99999999999999999999999"), "'next'"},
      {altered("1024", "0"), "'global_batch'"},
      {altered("1024", "4294967297"), "'global_batch'"},
      {altered("\"pad\"", "\"pads\""), "'epoch_end'"},
      {altered("\"pad\"", "3"), "'epoch_end'"},
      {altered("\"local\"", "null"), "'assignment'"},
      {altered("\"headrace-1\"", "\"headrace-2\""), "'order.name'"},
      {altered("\"lanes\": 64", "\"lanes\": 63"), "lanes"},
      {altered("\"lanes\": 64", "\"lanes\": 4294967360"), "'order.lanes'"},
      {altered("\"chunk\": 9", "\"chunk\": 0"), "'order.chunk'"},
      {altered("\"chunk\": 9", "\"chunks\": 9"), "'order.chunk' is missing"},
      {altered("19000", "3"), "window"},
      {altered("\"layout\": \"chunk\"", "\"layout\": \"rows\""), "'order.layout'"},
      {altered("18446744073709551615", "18446744073709551616"), "'order.seed'"},
      {altered("\"shuffle\": true", "\"shuffle\": 1"), "'order.shuffle'"},
      {altered("\"shuffle\": true", "\"shuffle\": true, \"shuffle\": false"), "state"},
      {altered("[[5000, 6000]]", "{}"), "'skip'"},
      {altered("[5000, 6000]", "5000"), "'skip'"},
      {altered("[5000, 6000]", "[5000]"), "'skip'"},
      {altered("[5000, 6000]", "[6000, 5000]"), "'skip'"},
      {altered("[5000, 6000]", "[5000, 18446744073709551615]"), "'skip'"},
      {altered("1281167", "0"), "'sources.samples'"},
      {altered("1281167", "281474976710657"), "'sources.samples'"},
      {altered("aaaaaaaa", "AAAAAAAA"), "'sources.identity'"},
      {altered(std::string(64, 'a'), "abc"), "'sources.identity'"},
      {altered("[{\"identity\"", "[{}, {\"identity\""), "2 entries"},
      {altered("\"name\": \"\"", "\"name\": \"" + std::string(300, 'n') + "\""), "source name"},
      {altered("\"0.1.0\"", "\"\""), "'library'"},
      {altered("\"0.1.0\"", "\"\\n\""), "'library'"},
      {std::string(kStateBytesMax + 1, ' '), "larger than the limit"},
  };
  for (const Hostile& hostile : table) {
    const auto state = OrderState::from_json(hostile.text);
    ASSERT_FALSE(state.is_ok()) << hostile.text.substr(0, 400);
    EXPECT_TRUE(state.status().code() == Code::kInvalidArgument ||
                state.status().code() == Code::kCorrupt);
    EXPECT_THAT(state.status().message(), HasSubstr(hostile.expected));
  }
}

TEST(OrderState, RefusesToWriteWhatItWouldNotRead) {
  OrderState state = sample_state();
  state.source.identity = "short";
  EXPECT_THAT(state.to_json().status().message(), HasSubstr("'sources.identity'"));
  state = sample_state();
  state.source.name = "web";
  EXPECT_THAT(state.to_json().status().message(), HasSubstr("'sources.name'"));
  state = sample_state();
  state.next = kPositionMax + 1;
  EXPECT_THAT(state.to_json().status().message(), HasSubstr("'next'"));
}

TEST(OrderState, MatchesItselfAndWhateverIsNotIdentity) {
  OrderState current = sample_state();
  EXPECT_TRUE(sample_state().check_matches(current).is_ok());
  current.global_batch = 7;
  current.next = 0;
  current.epoch_end = EpochEnd::kCarry;
  current.assignment = Assignment::kStrict;
  current.skip = {};
  current.library_version = "2.0.0";
  EXPECT_TRUE(sample_state().check_matches(current).is_ok());
}

TEST(OrderState, NamesEveryDifference) {
  OrderState current = sample_state();
  current.source.identity = std::string(64, 'b');
  current.order.seed = 3;
  current.order.chunk_samples = 10;
  const Status status = sample_state().check_matches(current);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("another run"), HasSubstr("identity of the data"),
                    HasSubstr("seed is 18446744073709551615 in the state and 3 here"),
                    HasSubstr("chunk (samples) is 9 in the state and 10 here"),
                    Not(HasSubstr("lanes")), Not(HasSubstr("number of samples"))));
  current = sample_state();
  current.source.samples = 5;
  current.order.layout = Layout::kUnit;
  current.order.lanes = 32;
  current.order.window_samples = 64;
  current.order.shuffle = false;
  current.source.name = current.order.source_name = "web";
  EXPECT_THAT(sample_state().check_matches(current).message(),
              AllOf(HasSubstr("samples"), HasSubstr("layout"), HasSubstr("lanes"),
                    HasSubstr("window"), HasSubstr("shuffle"), HasSubstr("'web'")));
}

}  // namespace
}  // namespace headrace::order
