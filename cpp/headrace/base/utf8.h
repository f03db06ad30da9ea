// UTF-8: whether bytes are well-formed text.
// Thread-safety: pure.
// Ownership: nothing.
#pragma once

#include <string_view>

namespace headrace {

// Well-formed as Unicode 15, table 3-7 has it: no overlong forms, surrogates or values past
// U+10FFFF. Runs of ASCII go 32 bytes at a time.
bool is_utf8(std::string_view text);

}  // namespace headrace
