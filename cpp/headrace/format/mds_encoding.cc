#include "headrace/format/mds_encoding.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "headrace/base/json.h"
#include "headrace/base/utf8.h"

namespace headrace::format {
namespace {

constexpr std::string_view kKnown =
    "bytes, str, int, uint8..uint64, int8..int64, float16, float32, float64, str_int, str_float, "
    "str_decimal, ndarray, ndarray:DTYPE, ndarray:DTYPE:SHAPE, json, jpeg, png";

// The byte that names a number type in front of an array.
struct TypeByte {
  DType dtype;
  std::uint8_t byte;
};
constexpr TypeByte kTypeBytes[] = {
    {DType::kU8, 8},   {DType::kI8, 9},   {DType::kU16, 16}, {DType::kI16, 17},
    {DType::kF16, 18}, {DType::kU32, 32}, {DType::kI32, 33}, {DType::kF32, 34},
    {DType::kU64, 64}, {DType::kI64, 65}, {DType::kF64, 66},
};

MdsColumn plain(FieldKind kind, MdsLayout layout, MediaKind media = MediaKind::kNone) {
  MdsColumn column;
  column.type.kind = kind;
  column.type.media = media;
  column.layout = layout;
  column.prototype.is_null = false;
  return column;
}

MdsColumn scalar(DType dtype) {
  MdsColumn column = plain(FieldKind::kScalar, MdsLayout::kNumbers);
  column.type.dtype = dtype;
  column.size = static_cast<std::uint32_t>(dtype_size(dtype));
  column.prototype.dtype = dtype;
  return column;
}

Result<std::vector<std::uint64_t>> parse_dimensions(std::string_view text) {
  std::vector<std::uint64_t> shape;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view digits = text.substr(begin, comma - begin);
    std::uint64_t size = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (error != std::errc() || end != digits.data() + digits.size() || size == 0) {
      return invalid_argument("its shape '" + std::string(text) +
                              "' is not a list of positive sizes such as 3,224,224");
    }
    shape.push_back(size);
    begin = comma + 1;
  }
  if (shape.size() > kDimensionsMax) {
    return unimplemented("it has " + std::to_string(shape.size()) +
                         " dimensions and at most 8 "
                         "are read; store it flat");
  }
  return shape;
}

Result<MdsColumn> parse_ndarray(std::string_view arguments) {
  MdsColumn column = plain(FieldKind::kArray, MdsLayout::kTyped);
  if (arguments.empty()) return column;
  arguments.remove_prefix(1);  // the colon
  const std::size_t colon = std::min(arguments.find(':'), arguments.size());
  const std::string_view name = arguments.substr(0, colon);
  const auto dtype = dtype_from_name(name);
  if (!dtype) {
    return invalid_argument("'" + std::string(name) + "' is no number type that MDS arrays have");
  }
  column.type.dtype = dtype;
  column.prototype.dtype = *dtype;
  column.layout = MdsLayout::kShaped;
  if (colon == arguments.size()) return column;

  HR_ASSIGN(column.type.shape, parse_dimensions(arguments.substr(colon + 1)));
  column.layout = MdsLayout::kNumbers;
  std::uint64_t size = dtype_size(*dtype);
  for (const std::uint64_t dimension : *column.type.shape) {
    const auto product = checked_mul(size, dimension);
    if (!product || *product > std::numeric_limits<std::uint32_t>::max()) {
      return invalid_argument("one such array would not fit a shard of 4 GiB");
    }
    size = *product;
    column.prototype.shape[column.prototype.dimensions++] = dimension;
  }
  column.size = static_cast<std::uint32_t>(size);
  return column;
}

Result<MdsColumn> refuse(std::string_view encoding) {
  if (encoding == "pkl") {
    return invalid_argument(
        "is a Python pickle, and reading pickles can run code that the data brings along; Headrace "
        "never does that. Write the column again as json, ndarray or bytes");
  }
  if (encoding == "pil" || encoding == "jpeg_array" || encoding == "jpegarray" ||
      encoding.starts_with("list[")) {
    return unimplemented("is not read yet; write the column again as jpeg, png or ndarray");
  }
  return unimplemented("is unknown; known are " + std::string(kKnown));
}

Result<MdsColumn> parse(std::string_view encoding) {
  if (encoding == "bytes") return plain(FieldKind::kBytes, MdsLayout::kRaw);
  if (encoding == "json") return plain(FieldKind::kJson, MdsLayout::kText);
  if (encoding == "jpeg") return plain(FieldKind::kMedia, MdsLayout::kRaw, MediaKind::kJpeg);
  if (encoding == "png") return plain(FieldKind::kMedia, MdsLayout::kRaw, MediaKind::kPng);
  if (encoding == "str" || encoding == "str_int" || encoding == "str_float" ||
      encoding == "str_decimal") {
    return plain(FieldKind::kStr, MdsLayout::kText);
  }
  if (encoding == "int") return scalar(DType::kI64);
  if (const auto dtype = dtype_from_name(encoding)) return scalar(*dtype);
  if (encoding == "ndarray" || encoding.starts_with("ndarray:")) {
    return parse_ndarray(encoding.substr(std::string_view("ndarray").size()));
  }
  return refuse(encoding);
}

std::uint64_t load_dimension(const std::byte* at, std::size_t width) {
  switch (width) {
    case 1: return load_le<std::uint8_t>(at);
    case 2: return load_le<std::uint16_t>(at);
    case 4: return load_le<std::uint32_t>(at);
    default: return load_le<std::uint64_t>(at);
  }
}

// Shape header and numbers, for a value whose dtype is known by now.
Status decode_shaped(ByteView raw, FieldValue& out) {
  if (raw.empty()) return corrupt("ends before its shape");
  const auto head = std::to_integer<std::uint8_t>(raw[0]);
  const std::size_t dimensions = head >> 2;
  const std::size_t width = std::size_t{1} << (head & 3);
  if (dimensions == 0) return corrupt("is an array of no dimension");
  if (dimensions > kDimensionsMax) {
    return unimplemented("has " + std::to_string(dimensions) + " dimensions; at most 8 are read");
  }
  const std::size_t header = 1 + dimensions * width;
  if (raw.size() < header) return corrupt("ends inside its shape");
  std::uint64_t bytes = dtype_size(out.dtype);
  for (std::size_t i = 0; i < dimensions; ++i) {
    const std::uint64_t size = load_dimension(raw.data() + 1 + i * width, width);
    const auto product = checked_mul(bytes, size);
    if (size == 0 || !product) return corrupt("has an impossible shape");
    bytes = *product;
    out.shape[i] = size;
  }
  if (bytes != raw.size() - header) {
    return corrupt("has " + std::to_string(raw.size() - header) + " bytes of numbers where its " +
                   "shape asks for " + std::to_string(bytes));
  }
  out.dimensions = static_cast<std::uint8_t>(dimensions);
  out.bytes = raw.subspan(header);
  return Status::ok();
}

Status decode_typed(ByteView raw, FieldValue& out) {
  if (raw.empty()) return corrupt("ends before its number type");
  const auto byte = std::to_integer<std::uint8_t>(raw[0]);
  for (const TypeByte& known : kTypeBytes) {
    if (known.byte != byte) continue;
    out.dtype = known.dtype;
    return decode_shaped(raw.subspan(1), out);
  }
  return corrupt("has the unknown number type " + std::to_string(byte));
}

std::string describe(const FieldValue& value) {
  std::string out(dtype_name(value.dtype));
  if (value.dimensions == 0) return out + " (no array)";
  out += "[";
  for (std::size_t i = 0; i < value.dimensions; ++i) {
    if (i > 0) out += ",";
    out += std::to_string(value.shape[i]);
  }
  return out + "]";
}

// Whether the numbers of an array value are as many as its shape says.
bool is_whole(const FieldValue& value) {
  std::uint64_t bytes = dtype_size(value.dtype);
  for (std::size_t i = 0; i < value.dimensions; ++i) {
    const auto product = checked_mul(bytes, value.shape[i]);
    if (!product) return false;
    bytes = *product;
  }
  return bytes == value.bytes.size();
}

template <typename T>
void append_shape(const FieldValue& value, unsigned width_code, std::string& out) {
  out.push_back(static_cast<char>(static_cast<unsigned>(value.dimensions) << 2 | width_code));
  for (std::size_t i = 0; i < value.dimensions; ++i) {
    append_le(out, static_cast<T>(value.shape[i]));
  }
}

Status encode_numbers(const MdsColumn& column, const FieldValue& value, std::string& out) {
  if (value.dimensions > kDimensionsMax) return invalid_argument("has more than 8 dimensions");
  const FieldValue& wanted = column.prototype;
  const bool has_type = column.layout == MdsLayout::kTyped || value.dtype == wanted.dtype;
  const bool has_shape = column.layout != MdsLayout::kNumbers ||
                         (value.dimensions == wanted.dimensions &&
                          std::equal(value.shape.begin(), value.shape.begin() + value.dimensions,
                                     wanted.shape.begin()));
  if (!has_type || !has_shape) {
    return invalid_argument("takes " + column.type.to_string() + ", and the value is " +
                            describe(value));
  }
  if (value.bytes.empty() || !is_whole(value)) {
    return invalid_argument("is an array with no elements or with others than its shape says");
  }
  if (column.layout == MdsLayout::kNumbers) {
    out += as_text(value.bytes);
    return Status::ok();
  }
  if (value.dimensions == 0) return invalid_argument("takes arrays of at least one dimension");
  if (column.layout == MdsLayout::kTyped) {
    for (const TypeByte& known : kTypeBytes) {
      if (known.dtype == value.dtype) out.push_back(static_cast<char>(known.byte));
    }
  }
  // The narrowest width that holds the largest size.
  const std::uint64_t largest =
      *std::max_element(value.shape.begin(), value.shape.begin() + value.dimensions);
  if (largest <= std::numeric_limits<std::uint8_t>::max()) {
    append_shape<std::uint8_t>(value, 0, out);
  } else if (largest <= std::numeric_limits<std::uint16_t>::max()) {
    append_shape<std::uint16_t>(value, 1, out);
  } else if (largest <= std::numeric_limits<std::uint32_t>::max()) {
    append_shape<std::uint32_t>(value, 2, out);
  } else {
    append_shape<std::uint64_t>(value, 3, out);
  }
  out += as_text(value.bytes);
  return Status::ok();
}

}  // namespace

Result<MdsColumn> parse_mds_encoding(std::string_view encoding) {
  auto column = parse(encoding);
  if (column.is_ok()) return column;
  return Status(column.status().code(), "the encoding '" + std::string(encoding.substr(0, 80)) +
                                            "' " + column.status().message());
}

Status mds_decode(const MdsColumn& column, ByteView raw, FieldValue& out) {
  out = column.prototype;
  switch (column.layout) {
    case MdsLayout::kText:
      if (!is_utf8(as_text(raw))) [[unlikely]]
        return corrupt("is not UTF-8 text");
      [[fallthrough]];
    case MdsLayout::kRaw:
    case MdsLayout::kNumbers: out.bytes = raw; return Status::ok();
    case MdsLayout::kShaped: return decode_shaped(raw, out);
    case MdsLayout::kTyped: return decode_typed(raw, out);
  }
  return internal_error("an MDS column has no layout");
}

Status mds_encode(const MdsColumn& column, const FieldValue& value, std::string& out) {
  if (value.is_null) return invalid_argument("is null, and MDS has no null");
  switch (column.layout) {
    case MdsLayout::kRaw: break;
    case MdsLayout::kText:
      if (!is_utf8(as_text(value.bytes))) return invalid_argument("is not UTF-8 text");
      if (column.type.kind == FieldKind::kJson) {
        const auto parsed = parse_json(as_text(value.bytes));
        if (!parsed.is_ok()) return invalid_argument("is " + parsed.status().message());
      }
      break;
    case MdsLayout::kNumbers:
    case MdsLayout::kShaped:
    case MdsLayout::kTyped: return encode_numbers(column, value, out);
  }
  out += as_text(value.bytes);
  return Status::ok();
}

}  // namespace headrace::format
