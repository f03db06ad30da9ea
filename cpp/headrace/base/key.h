// Object keys: the names of files inside a data set or a store, relative to its root.
// Thread-safety: pure.
// Ownership: nothing.
#pragma once

#include <cstddef>
#include <string_view>

#include "headrace/base/status.h"

namespace headrace {

// The longest key that S3 takes, in bytes.
inline constexpr std::size_t kKeyBytesMax = 1024;

// Keys in this form only: not empty, relative, '/'-separated, no empty, "." or ".." component, no
// NUL or backslash, at most kKeyBytesMax bytes. Everything that names a file inside a data set goes
// through here, so that nothing read from an index can leave the data set's root.
Status check_key(std::string_view key);

}  // namespace headrace
