// Any bytes as JSON: what parses must dump to a text that parses to the same dump.
#include <cstdint>

#include "headrace/base/bytes.h"
#include "headrace/base/check.h"
#include "headrace/base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = headrace::parse_json(text);
  if (!parsed.is_ok()) return 0;
  const std::string once = headrace::dump_json(*parsed);
  const auto again = headrace::parse_json(once);
  HR_CHECK(again.is_ok(), "a dump does not parse");
  HR_CHECK(headrace::dump_json(*again) == once, "a dump is not stable");
  return 0;
}
