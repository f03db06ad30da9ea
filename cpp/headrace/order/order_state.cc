#include "headrace/order/order_state.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "headrace/base/json.h"

namespace headrace::order {
namespace {

constexpr std::string_view kOrderName = "headrace-1";
constexpr std::size_t kIdentityDigitsMin = 16;
constexpr std::size_t kIdentityDigitsMax = 128;
constexpr std::size_t kVersionBytesMax = 64;

std::string number(std::uint64_t n) { return std::to_string(n); }

Status field_error(std::string_view field, const std::string& problem) {
  return invalid_argument("state field '" + std::string(field) + "' " + problem);
}

// Every object of the state has exactly these members.
Status check_members(const Json& object, std::string_view path,
                     std::initializer_list<std::string_view> names) {
  const std::string prefix = path.empty() ? "" : std::string(path) + ".";
  if (object.as_object() == nullptr)
    return field_error(path.empty() ? "(root)" : path,
                       "must be an object, not " + std::string(object.kind_name()));
  for (const std::string_view name : names)
    if (object.find(name) == nullptr) return field_error(prefix + std::string(name), "is missing");
  constexpr std::size_t kShownBytes = 64;
  for (const JsonMember& member : *object.as_object())
    if (std::find(names.begin(), names.end(), member.name) == names.end())
      return field_error(prefix + member.name.substr(0, kShownBytes), "is unknown to this version");
  return Status::ok();
}

Result<std::uint64_t> get_integer(const Json& value, std::string_view field, std::uint64_t low,
                                  std::uint64_t high) {
  const std::optional<std::uint64_t> n = value.as_u64();
  if (!n)
    return field_error(field, "must be a whole number that is not negative, not " +
                                  std::string(value.kind_name()));
  if (*n < low || *n > high)
    return field_error(field,
                       "must be " + number(low) + " to " + number(high) + ", not " + number(*n));
  return *n;
}

Result<std::string> get_text(const Json& value, std::string_view field) {
  if (value.as_string() == nullptr)
    return field_error(field, "must be a string, not " + std::string(value.kind_name()));
  return *value.as_string();
}

template <typename Enum>
Result<Enum> get_name(const Json& value, std::string_view field,
                      std::optional<Enum> (*from_name)(std::string_view)) {
  HR_ASSIGN(const std::string name, get_text(value, field));
  const std::optional<Enum> known = from_name(name);
  if (!known) return field_error(field, "has a value that is unknown to this version");
  return *known;
}

Status check_identity(const std::string& identity) {
  const bool hex = identity.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (hex && identity.size() >= kIdentityDigitsMin && identity.size() <= kIdentityDigitsMax)
    return Status::ok();
  return field_error("sources.identity", "must be " + number(kIdentityDigitsMin) + " to " +
                                             number(kIdentityDigitsMax) +
                                             " lower-case hexadecimal digits");
}

Status check_version_text(const std::string& version) {
  bool plain = !version.empty() && version.size() <= kVersionBytesMax;
  for (const char c : version) plain = plain && c >= ' ' && c <= '~';
  if (plain) return Status::ok();
  return field_error("library",
                     "must be 1 to " + number(kVersionBytesMax) + " printable ASCII characters");
}

Result<OrderSpec> read_order(const Json& json) {
  HR_TRY(check_members(json, "order",
                       {"chunk", "lanes", "layout", "name", "seed", "shuffle", "window"}));
  HR_ASSIGN(const std::string name, get_text(*json.find("name"), "order.name"));
  if (name != kOrderName)
    return field_error("order.name",
                       "must be '" + std::string(kOrderName) + "', the only order of this version");
  constexpr std::uint64_t kAny = ~std::uint64_t{0};
  OrderSpec spec;
  HR_ASSIGN(spec.seed, get_integer(*json.find("seed"), "order.seed", 0, kAny));
  const std::optional<bool> shuffle = json.find("shuffle")->as_bool();
  if (!shuffle) return field_error("order.shuffle", "must be true or false");
  spec.shuffle = *shuffle;
  HR_ASSIGN(const std::uint64_t lanes,
            get_integer(*json.find("lanes"), "order.lanes", 1, kLanesMax));
  spec.lanes = static_cast<std::uint32_t>(lanes);
  HR_ASSIGN(spec.chunk_samples, get_integer(*json.find("chunk"), "order.chunk", 1, kSamplesMax));
  HR_ASSIGN(spec.window_samples, get_integer(*json.find("window"), "order.window", 1, kSamplesMax));
  HR_ASSIGN(spec.layout, get_name(*json.find("layout"), "order.layout", layout_from_name));
  return spec;
}

Result<SourceIdentity> read_source(const Json& json) {
  const Json::Array* entries = json.as_array();
  if (entries == nullptr) return field_error("sources", "must be an array");
  if (entries->size() != 1)
    return field_error("sources", "has " + number(entries->size()) +
                                      " entries; this version resumes exactly one source");
  const Json& entry = entries->front();
  HR_TRY(check_members(entry, "sources", {"identity", "name", "samples"}));
  SourceIdentity source;
  HR_ASSIGN(source.name, get_text(*entry.find("name"), "sources.name"));
  HR_ASSIGN(source.identity, get_text(*entry.find("identity"), "sources.identity"));
  HR_ASSIGN(source.samples, get_integer(*entry.find("samples"), "sources.samples", 1, kSamplesMax));
  return source;
}

Result<SkipList> read_skip(const Json& json) {
  const Json::Array* pairs = json.as_array();
  if (pairs == nullptr) return field_error("skip", "must be an array");
  if (pairs->size() > kSkipIntervalsMax)
    return field_error("skip", "has more than " + number(kSkipIntervalsMax) + " intervals");
  std::vector<Interval> intervals;
  intervals.reserve(pairs->size());
  for (const Json& item : *pairs) {
    const Json::Array* pair = item.as_array();
    if (pair == nullptr || pair->size() != 2)
      return field_error("skip", "must hold [begin, end] pairs");
    Interval interval;
    HR_ASSIGN(interval.begin, get_integer(pair->front(), "skip", 0, kPositionMax));
    HR_ASSIGN(interval.end, get_integer(pair->back(), "skip", 0, kPositionMax));
    intervals.push_back(interval);
  }
  auto list = SkipList::make(std::move(intervals));
  if (!list.is_ok()) return list.status().with_context("state field 'skip'");
  return list;
}

Json text_value(std::string_view text) { return Json::string(std::string(text)); }

std::string in_quotes(std::string_view text) {
  std::string quoted(1, '\'');
  quoted.append(text).push_back('\'');
  return quoted;
}

class Differences {
 public:
  void add(std::string_view what, const std::string& in_state, const std::string& here) {
    if (in_state == here) return;
    text_ += (text_.empty() ? "" : "; ") + std::string(what) + " is " + in_state +
             " in the state and " + here + " here";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

Status OrderState::validate() const {
  HR_TRY(order.validate());
  if (source.name != order.source_name)
    return field_error("sources.name", "differs from the name that keys the order");
  HR_TRY(check_identity(source.identity));
  if (source.samples == 0 || source.samples > kSamplesMax)
    return field_error("sources.samples", "must be 1 to " + number(kSamplesMax));
  if (global_batch == 0 || global_batch > kGlobalBatchMax)
    return field_error("global_batch", "must be 1 to " + number(kGlobalBatchMax));
  if (next > kPositionMax) return field_error("next", "must be at most " + number(kPositionMax));
  return check_version_text(library_version);
}

Result<std::string> OrderState::to_json() const {
  HR_TRY(validate());
  Json skipped = Json::array();
  for (const Interval& i : skip.intervals())
    skipped.push_back(Json::array({Json::number(i.begin), Json::number(i.end)}));
  Json spec = Json::object();
  spec.set("chunk", Json::number(order.chunk_samples));
  spec.set("lanes", Json::number(order.lanes));
  spec.set("layout", text_value(layout_name(order.layout)));
  spec.set("name", text_value(kOrderName));
  spec.set("seed", Json::number(order.seed));
  spec.set("shuffle", Json::boolean(order.shuffle));
  spec.set("window", Json::number(order.window_samples));
  Json entry = Json::object();
  entry.set("identity", text_value(source.identity));
  entry.set("name", text_value(source.name));
  entry.set("samples", Json::number(source.samples));
  Json state = Json::object();
  state.set("assignment", text_value(assignment_name(assignment)));
  state.set("epoch_end", text_value(epoch_end_name(epoch_end)));
  state.set("global_batch", Json::number(global_batch));
  state.set("library", text_value(library_version));
  state.set("next", Json::number(next));
  state.set("order", std::move(spec));
  state.set("skip", std::move(skipped));
  state.set("sources", Json::array({std::move(entry)}));
  state.set("version", Json::number(kStateVersion));
  return dump_json(state);
}

Result<OrderState> OrderState::from_json(std::string_view text) {
  if (text.size() > kStateBytesMax)
    return corrupt("a state of " + number(text.size()) + " bytes is larger than the limit of " +
                   number(kStateBytesMax));
  auto parsed = parse_json(text);
  if (!parsed.is_ok()) return parsed.status().with_context("state");
  const Json& json = *parsed;
  // The version first: another version may have other fields.
  const Json* version_field = json.find("version");
  if (version_field == nullptr)
    return field_error("version", "is missing: this is not the state of a loader");
  HR_ASSIGN(const std::uint64_t version,
            get_integer(*version_field, "version", 0, ~std::uint64_t{0}));
  if (version != kStateVersion)
    return field_error("version", "is " + number(version) + " and this library reads version " +
                                      number(kStateVersion) +
                                      "; use the library that wrote the state, or a newer one");
  HR_TRY(check_members(json, "",
                       {"assignment", "epoch_end", "global_batch", "library", "next", "order",
                        "skip", "sources", "version"}));
  OrderState state;
  HR_ASSIGN(state.source, read_source(*json.find("sources")));
  HR_ASSIGN(state.order, read_order(*json.find("order")));
  state.order.source_name = state.source.name;
  HR_ASSIGN(state.epoch_end, get_name(*json.find("epoch_end"), "epoch_end", epoch_end_from_name));
  HR_ASSIGN(state.assignment,
            get_name(*json.find("assignment"), "assignment", assignment_from_name));
  HR_ASSIGN(state.global_batch,
            get_integer(*json.find("global_batch"), "global_batch", 1, kGlobalBatchMax));
  HR_ASSIGN(state.skip, read_skip(*json.find("skip")));
  HR_ASSIGN(state.next, get_integer(*json.find("next"), "next", 0, kPositionMax));
  HR_ASSIGN(state.library_version, get_text(*json.find("library"), "library"));
  const Status valid = state.validate();
  if (!valid.is_ok()) return valid.with_context("state");
  return state;
}

Status OrderState::check_matches(const OrderState& current) const {
  Differences differences;
  differences.add("the source name", in_quotes(source.name), in_quotes(current.source.name));
  differences.add("the number of samples", number(source.samples), number(current.source.samples));
  differences.add("the identity of the data", source.identity, current.source.identity);
  const OrderSpec& a = order;
  const OrderSpec& b = current.order;
  differences.add("seed", number(a.seed), number(b.seed));
  differences.add("shuffle", a.shuffle ? "true" : "false", b.shuffle ? "true" : "false");
  differences.add("lanes", number(a.lanes), number(b.lanes));
  differences.add("chunk (samples)", number(a.chunk_samples), number(b.chunk_samples));
  differences.add("window (samples)", number(a.window_samples), number(b.window_samples));
  differences.add("layout", std::string(layout_name(a.layout)), std::string(layout_name(b.layout)));
  if (differences.text().empty()) return Status::ok();
  return invalid_argument("this state belongs to another run: " + differences.text() +
                          ". Open the data and order of the state, or start without it");
}

}  // namespace headrace::order
