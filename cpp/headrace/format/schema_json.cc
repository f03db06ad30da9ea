#include "headrace/format/schema_json.h"

#include <set>

#include "headrace/base/utf8.h"

namespace headrace::format {
namespace {

struct KindName {
  FieldKind kind;
  std::string_view name;
};
constexpr KindName kKinds[] = {
    {FieldKind::kScalar, "scalar"}, {FieldKind::kBytes, "bytes"}, {FieldKind::kStr, "str"},
    {FieldKind::kJson, "json"},     {FieldKind::kArray, "array"}, {FieldKind::kList, "list"},
    {FieldKind::kMedia, "media"},
};

Json type_to_json(const FieldType& type) {
  Json out = Json::object();
  for (const KindName& known : kKinds) {
    if (known.kind == type.kind) out.set("kind", Json::string(std::string(known.name)));
  }
  if (type.dtype) out.set("dtype", Json::string(std::string(dtype_name(*type.dtype))));
  if (type.shape) {
    Json shape = Json::array();
    for (const std::uint64_t size : *type.shape) shape.push_back(Json::number(size));
    out.set("shape", std::move(shape));
  }
  if (type.media != MediaKind::kNone) {
    out.set("media", Json::string(type.media == MediaKind::kPng ? "png" : "jpeg"));
  }
  if (type.item) out.set("item", type_to_json(*type.item));
  if (type.nullable) out.set("nullable", Json::boolean(true));
  return out;
}

Result<std::string> string_member(const Json& json, std::string_view name) {
  const Json* member = json.find(name);
  if (member == nullptr || member->as_string() == nullptr) {
    return corrupt("'" + std::string(name) + "' must be a string");
  }
  return *member->as_string();
}

Result<std::vector<std::uint64_t>> parse_shape(const Json& json) {
  const Json::Array* sizes = json.as_array();
  if (sizes == nullptr || sizes->empty() || sizes->size() > kDimensionsMax) {
    return corrupt("'shape' must be an array of 1 to 8 sizes");
  }
  std::vector<std::uint64_t> shape;
  std::uint64_t product = 1;
  for (const Json& size : *sizes) {
    const auto value = size.as_u64();
    const auto next = value ? checked_mul(product, *value) : std::nullopt;
    if (!value || *value == 0 || !next || *next > (std::uint64_t{1} << 40)) {
      return corrupt("'shape' holds a size that no array can have");
    }
    product = *next;
    shape.push_back(*value);
  }
  return shape;
}

Result<FieldType> type_from_json(const Json& json, bool is_item) {
  FieldType type;
  HR_ASSIGN(const std::string kind, string_member(json, "kind"));
  bool is_known = false;
  for (const KindName& known : kKinds) {
    if (known.name != kind) continue;
    type.kind = known.kind;
    is_known = true;
  }
  if (!is_known) return corrupt("the kind '" + kind + "' is unknown");
  if (json.find("dtype")) {
    HR_ASSIGN(const std::string name, string_member(json, "dtype"));
    type.dtype = dtype_from_name(name);
    if (!type.dtype) return corrupt("the number type '" + name + "' is unknown");
  }
  if (type.kind == FieldKind::kScalar && !type.dtype) return corrupt("a scalar needs a 'dtype'");
  if (const Json* shape = json.find("shape")) {
    HR_ASSIGN(type.shape, parse_shape(*shape));
  }
  if (type.kind == FieldKind::kMedia) {
    HR_ASSIGN(const std::string media, string_member(json, "media"));
    if (media != "jpeg" && media != "png") return corrupt("the medium '" + media + "' is unknown");
    type.media = media == "png" ? MediaKind::kPng : MediaKind::kJpeg;
  }
  if (type.kind == FieldKind::kList) {
    const Json* item = json.find("item");
    if (is_item || item == nullptr) return corrupt("a list holds items that are no lists");
    HR_ASSIGN(FieldType item_type, type_from_json(*item, true));
    type.item = std::make_shared<const FieldType>(std::move(item_type));
  }
  if (const Json* nullable = json.find("nullable")) {
    if (!nullable->as_bool()) return corrupt("'nullable' must be true or false");
    type.nullable = *nullable->as_bool();
  }
  return type;
}

}  // namespace

Json schema_to_json(const Schema& schema) {
  Json fields = Json::array();
  for (const Field& field : schema.fields) {
    Json entry = Json::object();
    entry.set("name", Json::string(field.name));
    entry.set("encoding", Json::string(field.encoding));
    entry.set("type", type_to_json(field.type));
    fields.push_back(std::move(entry));
  }
  Json out = Json::object();
  out.set("fields", std::move(fields));
  return out;
}

Result<Schema> schema_from_json(const Json& json) {
  const Json* fields = json.find("fields");
  if (fields == nullptr || fields->as_array() == nullptr) {
    return corrupt("the schema has no array 'fields'");
  }
  if (fields->as_array()->size() > kFieldsMax) {
    return corrupt("the schema has more than " + std::to_string(kFieldsMax) + " fields");
  }
  Schema schema;
  std::set<std::string> names;
  for (const Json& entry : *fields->as_array()) {
    const std::string where = "field " + std::to_string(schema.fields.size()) + " of the schema";
    Field field;
    auto name = string_member(entry, "name");
    if (!name.is_ok()) return name.status().with_context(where);
    field.name = *name;
    if (field.name.empty() || !is_utf8(field.name) || !names.insert(field.name).second) {
      return corrupt(where + " has an empty or repeated name");
    }
    auto encoding = string_member(entry, "encoding");
    if (!encoding.is_ok()) return encoding.status().with_context(where);
    field.encoding = *encoding;
    const Json* type = entry.find("type");
    if (type == nullptr) return corrupt(where + " has no 'type'");
    auto parsed = type_from_json(*type, false);
    if (!parsed.is_ok()) return parsed.status().with_context(where);
    field.type = *parsed;
    schema.fields.push_back(std::move(field));
  }
  return schema;
}

}  // namespace headrace::format
