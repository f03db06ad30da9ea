// Shared configuration files: parsing ends, and an error never repeats what the file says.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headrace/base/check.h"
#include "headrace/store/ini_file.h"

using namespace headrace::store;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = parse_ini(text);
  if (!file.is_ok()) {
    HR_CHECK(file.status().message().size() < 100, "an error is short");
    return 0;
  }
  for (const auto& [section, names] : *file) {
    HR_CHECK(!section.empty(), "sections have names");
    for (const auto& [name, value] : names) {
      HR_CHECK(!name.empty(), "settings have names");
      HR_CHECK(value.find('\n') == std::string::npos, "a value is one line");
    }
  }
  return 0;
}
