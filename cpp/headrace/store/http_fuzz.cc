// Headers of HTTP answers: whatever a server sends, parsing ends and keeps its promises.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headrace/base/check.h"
#include "headrace/store/http_message.h"
#include "headrace/store/url.h"

using namespace headrace::store;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  HttpHead head;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    if (!parse_head_line(line, head).is_ok()) break;
    const auto range = parse_content_range(line);
    if (range.is_ok() && range->first_last) {
      HR_CHECK(range->first_last->first <= range->first_last->second, "a range is ordered");
      HR_CHECK(!range->size || range->first_last->second < *range->size, "a range is inside");
    }
    const auto pause = parse_retry_after(line, 1'700'000'000);
    HR_CHECK(!pause || (pause->count() >= 0 && *pause <= std::chrono::hours(1)), "a bounded pause");
    (void)is_strong_etag(line);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  for (const auto& [name, value] : head.fields) {
    if (const auto range = parse_content_range(value); range.is_ok()) {
      HR_CHECK(range->first_last || range->size, "a range says something");
    }
    (void)parse_http_date(value);
    (void)pin_of(head, 1);
  }
  if (const auto url = parse_http_url(text); url.is_ok()) {
    HR_CHECK(!url->host.empty(), "a URL has a host");
    HR_CHECK(parse_http_url(url->without_query()).is_ok(), "what is shown is a URL again");
    (void)resolve(*url, text);
  }
  if (const auto decoded = percent_decode(text); decoded.is_ok()) {
    HR_CHECK(*percent_decode(percent_encode(*decoded, false)) == *decoded, "encoding round-trips");
  }
  return 0;
}
