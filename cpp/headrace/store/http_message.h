// HTTP messages: the few header fields a reader of objects must understand, parsed strictly.
// Thread-safety: pure functions and values.
// Ownership: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/base/status.h"

namespace headrace::store {

struct HttpHead {
  int status = 0;                                             // 0 until a status line has arrived
  std::vector<std::pair<std::string, std::string>> fields{};  // names in lower case

  // The first field of that (lower-case) name, or null.
  const std::string* find(std::string_view name) const;
  bool is_success() const { return status >= 200 && status < 300; }
  bool is_redirect() const { return status >= 300 && status < 400 && status != 304; }
};

// More header bytes than this end a request; no store sends a tenth of it.
inline constexpr std::size_t kHeadBytesMax = 64 * 1024;

// Takes one line of a response head, with or without its line end. A status line starts a new head
// (interim answers such as 100 come before the real one); the empty line changes nothing.
Status parse_head_line(std::string_view line, HttpHead& head);

// Digits only, and nothing that leaves 64 bits.
std::optional<std::uint64_t> parse_decimal(std::string_view text);

// "bytes 0-9/100", "bytes 0-9/*", "bytes */100".
struct ContentRange {
  std::optional<std::pair<std::uint64_t, std::uint64_t>> first_last{};  // inclusive
  std::optional<std::uint64_t> size{};
};
Result<ContentRange> parse_content_range(std::string_view text);

// The fixed form of RFC 9110 only ("Sun, 06 Nov 1994 08:49:37 GMT"), in seconds since 1970.
std::optional<std::int64_t> parse_http_date(std::string_view text);

// Seconds or a date; at most an hour, whatever is asked for.
std::optional<Duration> parse_retry_after(std::string_view text, std::int64_t unix_now);

// Content-Length, when it is there and a number.
std::optional<std::uint64_t> content_length(const HttpHead& head);
bool is_strong_etag(std::string_view etag);
// What names this version of the object: the ETag, else the time of its last change, else its size.
std::string pin_of(const HttpHead& head, std::uint64_t size);

}  // namespace headrace::store
