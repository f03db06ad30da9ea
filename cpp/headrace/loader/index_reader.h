// Opens data through Headrace's own index: the step from the index file to a reader.
// Thread-safety: pure.
// Ownership: the reader shares the index.
#pragma once

#include <memory>

#include "headrace/format/reader.h"
#include "headrace/trust/index.h"

namespace headrace::loader {

// Unimplemented when the index is of a format that this build does not read by it, Corrupt when its
// schema is none. Shards carry the SHA-256 of the index as their hash.
Result<std::shared_ptr<format::Reader>> reader_from_index(
    const std::shared_ptr<const trust::IndexFile>& index);

}  // namespace headrace::loader
