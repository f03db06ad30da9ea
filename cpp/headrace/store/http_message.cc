#include "headrace/store/http_message.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace headrace::store {
namespace {

constexpr std::size_t kFieldsMax = 256;

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_token_char(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         kOthers.find(c) != std::string_view::npos;
}

Status parse_status_line(std::string_view line, HttpHead& head) {
  // "HTTP/1.1 206 Partial Content"
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || line.size() < space + 4) {
    return corrupt("the status line of the answer is not one");
  }
  const auto status = parse_decimal(line.substr(space + 1, 3));
  const bool ends = line.size() == space + 4 || line[space + 4] == ' ';
  if (!status || *status < 100 || !ends) return corrupt("the status line of the answer is not one");
  head = HttpHead{};
  head.status = static_cast<int>(*status);
  return Status::ok();
}

}  // namespace

const std::string* HttpHead::find(std::string_view name) const {
  for (const auto& [key, value] : fields) {
    if (key == name) return &value;
  }
  return nullptr;
}

Status parse_head_line(std::string_view line, HttpHead& head) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  if (line.empty()) return Status::ok();
  if (line.starts_with("HTTP/")) return parse_status_line(line, head);
  const std::size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos ||
      !std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(colon),
                   is_token_char)) {
    return corrupt("a header line of the answer is not 'name: value'");
  }
  if (head.fields.size() >= kFieldsMax) return corrupt("the answer has more than 256 header lines");
  std::string name(line.substr(0, colon));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  head.fields.emplace_back(std::move(name), trim(line.substr(colon + 1)));
  return Status::ok();
}

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  if (text.empty() || text.size() > 20) return std::nullopt;
  std::uint64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<std::uint64_t>(c - '0'), &value)) {
      return std::nullopt;
    }
  }
  return value;
}

Result<ContentRange> parse_content_range(std::string_view text) {
  const Status bad = corrupt("Content-Range is not 'bytes FIRST-LAST/SIZE'");
  text = trim(text);
  if (!text.starts_with("bytes ")) return bad;
  text = trim(text.substr(6));
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return bad;
  ContentRange out;
  const std::string_view size = text.substr(slash + 1);
  if (size != "*") {
    out.size = parse_decimal(size);
    if (!out.size) return bad;
  }
  const std::string_view range = text.substr(0, slash);
  if (range == "*") {
    if (!out.size) return bad;
    return out;
  }
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return bad;
  const auto first = parse_decimal(range.substr(0, dash));
  const auto last = parse_decimal(range.substr(dash + 1));
  if (!first || !last || *last < *first || *last == ~std::uint64_t{0}) return bad;
  if (out.size && *last >= *out.size) return bad;
  out.first_last = std::pair{*first, *last};
  return out;
}

std::optional<std::int64_t> parse_http_date(std::string_view text) {
  // Sun, 06 Nov 1994 08:49:37 GMT
  if (text.size() != 29 || text.substr(3, 2) != ", " || text.substr(25) != " GMT") {
    return std::nullopt;
  }
  if (text[7] != ' ' || text[11] != ' ' || text[16] != ' ' || text[19] != ':' || text[22] != ':') {
    return std::nullopt;
  }
  static constexpr std::array<std::string_view, 12> kMonths = {
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto month = std::find(kMonths.begin(), kMonths.end(), text.substr(8, 3));
  const auto day = parse_decimal(text.substr(5, 2));
  const auto year = parse_decimal(text.substr(12, 4));
  const auto hour = parse_decimal(text.substr(17, 2));
  const auto minute = parse_decimal(text.substr(20, 2));
  const auto second = parse_decimal(text.substr(23, 2));
  if (month == kMonths.end() || !day || !year || !hour || !minute || !second) return std::nullopt;
  // A leap second (60) is allowed by the grammar.
  if (*hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const std::chrono::year_month_day date{
      std::chrono::year(static_cast<int>(*year)),
      std::chrono::month(static_cast<unsigned>(month - kMonths.begin() + 1)),
      std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<std::int64_t>(days) * 86400 +
         static_cast<std::int64_t>(*hour * 3600 + *minute * 60 + *second);
}

std::optional<Duration> parse_retry_after(std::string_view text, std::int64_t unix_now) {
  constexpr std::int64_t kLongest = 3600;
  std::int64_t seconds = 0;
  if (const auto number = parse_decimal(trim(text))) {
    seconds = static_cast<std::int64_t>(std::min<std::uint64_t>(*number, kLongest));
  } else if (const auto date = parse_http_date(trim(text))) {
    seconds = std::clamp<std::int64_t>(*date - unix_now, 0, kLongest);
  } else {
    return std::nullopt;
  }
  return std::chrono::seconds(seconds);
}

std::optional<std::uint64_t> content_length(const HttpHead& head) {
  const std::string* text = head.find("content-length");
  return text ? parse_decimal(*text) : std::nullopt;
}

bool is_strong_etag(std::string_view etag) {
  if (etag.size() < 2 || etag.front() != '"' || etag.back() != '"') return false;
  return std::all_of(etag.begin() + 1, etag.end() - 1, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x21 && byte != '"' && byte != 0x7f;
  });
}

std::string pin_of(const HttpHead& head, std::uint64_t size) {
  if (const std::string* etag = head.find("etag"); etag && !etag->empty()) return *etag;
  if (const std::string* time = head.find("last-modified"); time && !time->empty()) {
    return "last-modified " + *time + " size " + std::to_string(size);
  }
  return "size " + std::to_string(size);
}

}  // namespace headrace::store
