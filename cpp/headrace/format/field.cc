#include "headrace/format/field.h"

namespace headrace::format {
namespace {

struct DTypeFacts {
  DType dtype;
  std::string_view name;
  std::size_t size;
};

// In the order of the enumeration.
constexpr DTypeFacts kDTypes[] = {
    {DType::kU8, "uint8", 1},  {DType::kI8, "int8", 1},     {DType::kU16, "uint16", 2},
    {DType::kI16, "int16", 2}, {DType::kF16, "float16", 2}, {DType::kU32, "uint32", 4},
    {DType::kI32, "int32", 4}, {DType::kF32, "float32", 4}, {DType::kU64, "uint64", 8},
    {DType::kI64, "int64", 8}, {DType::kF64, "float64", 8},
};

std::string array_to_string(const FieldType& type) {
  std::string out(type.dtype ? dtype_name(*type.dtype) : "any");
  if (!type.shape) return out + "[?]";
  out += "[";
  for (std::size_t i = 0; i < type.shape->size(); ++i) {
    if (i > 0) out += ",";
    out += std::to_string((*type.shape)[i]);
  }
  return out + "]";
}

}  // namespace

std::size_t dtype_size(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)].size; }

std::string_view dtype_name(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)].name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeFacts& facts : kDTypes) {
    if (facts.name == name) return facts.dtype;
  }
  return std::nullopt;
}

std::string FieldType::to_string() const {
  std::string out;
  switch (kind) {
    case FieldKind::kScalar: out = dtype ? dtype_name(*dtype) : "number"; break;
    case FieldKind::kBytes: out = "bytes"; break;
    case FieldKind::kStr: out = "str"; break;
    case FieldKind::kJson: out = "json"; break;
    case FieldKind::kArray: out = array_to_string(*this); break;
    case FieldKind::kList: out = "list[" + (item ? item->to_string() : "bytes") + "]"; break;
    case FieldKind::kMedia: out = media == MediaKind::kPng ? "png" : "jpeg"; break;
  }
  if (nullable) out += "?";
  return out;
}

bool operator==(const FieldType& a, const FieldType& b) {
  const bool has_same_item = a.item && b.item ? *a.item == *b.item : !a.item && !b.item;
  return a.kind == b.kind && a.dtype == b.dtype && a.shape == b.shape && a.media == b.media &&
         a.nullable == b.nullable && has_same_item;
}

std::optional<std::size_t> Schema::find(std::string_view name) const {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return i;
  }
  return std::nullopt;
}

}  // namespace headrace::format
