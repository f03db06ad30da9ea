// IniFile: the shared configuration files of AWS tools, parsed as those tools do.
// Thread-safety: pure.
// Ownership: values.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "headrace/base/status.h"

namespace headrace::store {

// Section -> name -> value, names in lower case. An indented "a = b" below "s3 =" is "s3.a".
using IniFile = std::map<std::string, std::map<std::string, std::string>>;

inline constexpr std::size_t kIniBytesMax = 1 << 20;

// InvalidArgument with the line number, never with its text (it may be a secret).
Result<IniFile> parse_ini(std::string_view text);

}  // namespace headrace::store
