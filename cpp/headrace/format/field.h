// Fields: the closed set of things a sample may hold, and views of their values.
// Thread-safety: values; views are read-only.
// Ownership: a FieldValue borrows from the unit bytes it was found in, or from `held`.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/bytes.h"

namespace headrace::format {

enum class FieldKind : std::uint8_t {
  kScalar,  // one number of `dtype`
  kBytes,   // opaque
  kStr,     // UTF-8 text
  kJson,    // UTF-8 text of one JSON value
  kArray,   // numbers of `dtype` in C order; of `shape`, or ragged when that is absent
  kList,    // a list of `item`
  kMedia,   // an encoded picture: a whole JPEG or PNG file
};

enum class DType : std::uint8_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kF16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64,
};
std::size_t dtype_size(DType dtype);       // bytes of one number
std::string_view dtype_name(DType dtype);  // "uint8", as numpy spells it
std::optional<DType> dtype_from_name(std::string_view name);

enum class MediaKind : std::uint8_t { kNone, kJpeg, kPng };

struct FieldType {
  FieldKind kind = FieldKind::kBytes;
  std::optional<DType> dtype;  // scalar and array; absent when each value brings its own
  std::optional<std::vector<std::uint64_t>> shape;  // array; absent when each value brings its own
  MediaKind media = MediaKind::kNone;
  std::shared_ptr<const FieldType> item;  // list
  bool nullable = false;

  // "int64", "bytes", "uint16[2048]", "float32[?]", "jpeg", "list[jpeg]", "str?".
  std::string to_string() const;
};
bool operator==(const FieldType& a, const FieldType& b);

struct Field {
  std::string name;
  FieldType type;
  std::string encoding;  // as the format spells it, e.g. MDS "ndarray:uint16:2048"
};

struct Schema {
  std::vector<Field> fields;
  // Position of a field, or nullopt.
  std::optional<std::size_t> find(std::string_view name) const;
};

inline constexpr std::size_t kDimensionsMax = 8;

struct FieldValue {
  bool is_null = true;
  // The payload: packed little-endian numbers, text, or the file of a picture.
  ByteView bytes;
  DType dtype = DType::kU8;                           // scalar, array
  std::uint8_t dimensions = 0;                        // array
  std::array<std::uint64_t, kDimensionsMax> shape{};  // array, first `dimensions` entries
  // Set when the unit does not hold the payload in one piece (a tar name with a ustar prefix):
  // `bytes` then lives as long as this value and its copies.
  std::shared_ptr<const std::string> held;
};

}  // namespace headrace::format
