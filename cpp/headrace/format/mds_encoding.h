// The column encodings of Mosaic MDS: from their names to bytes and back.
// Thread-safety: pure functions and values.
// Ownership: decoded values borrow from the bytes they were found in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/status.h"
#include "headrace/format/field.h"

namespace headrace::format {

// How the bytes of one value are laid out.
enum class MdsLayout : std::uint8_t {
  kRaw,      // opaque bytes or a picture's file
  kText,     // UTF-8
  kNumbers,  // one number, or an array of known type and shape: the numbers alone
  kShaped,   // shape header, then numbers of a known type
  kTyped,    // type byte, shape header, then numbers
};

struct MdsColumn {
  FieldType type;
  MdsLayout layout = MdsLayout::kRaw;
  std::optional<std::uint32_t> size;  // absent when each value has its own
  FieldValue prototype;               // what every value has in common
};

// "int", "ndarray:uint16:2048", ... Unimplemented names an encoding that is meaningful and not read
// here, InvalidArgument refuses pickles and what is no encoding at all.
Result<MdsColumn> parse_mds_encoding(std::string_view encoding);

// `raw` has column.size bytes where that is set. Corrupt when the bytes are not such a value.
Status mds_decode(const MdsColumn& column, ByteView raw, FieldValue& out);

// Appends the bytes of `value`. InvalidArgument when the value is null or of another type.
Status mds_encode(const MdsColumn& column, const FieldValue& value, std::string& out);

}  // namespace headrace::format
