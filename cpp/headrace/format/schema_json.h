// A schema as JSON text, as Headrace's own index keeps it.
// Thread-safety: pure.
// Ownership: results own their text.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/json.h"
#include "headrace/format/field.h"

namespace headrace::format {

inline constexpr std::size_t kFieldsMax = 4096;

// {"fields": [{"encoding": "jpg", "name": "jpg", "type": {"kind": "media", "media": "jpeg"}}]}
Json schema_to_json(const Schema& schema);
// Refuses unknown kinds, duplicate and empty names and shapes that no value can have: Corrupt.
Result<Schema> schema_from_json(const Json& json);

}  // namespace headrace::format
