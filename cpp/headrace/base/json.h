// JSON, strictly: what indexes, schemas and states are written in.
// Thread-safety: values; parsing and dumping are pure.
// Ownership: a Json owns everything below it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/base/status.h"

namespace headrace {

struct JsonMember;

class Json {
 public:
  using Array = std::vector<Json>;
  // In the order of the text; names are unique.
  using Object = std::vector<JsonMember>;

  // null. Defined where JsonMember is complete, which clang asks for.
  Json() noexcept;
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();
  static Json boolean(bool value);
  static Json number(std::uint64_t value);
  static Json number_signed(std::int64_t value);
  static Json number_double(double value);
  static Json string(std::string value);
  static Json array(Array items = {});
  static Json object();  // an empty one; see set()

  bool is_null() const { return rep_.index() == 0; }
  std::optional<bool> as_bool() const;
  // Whole numbers that fit; a number written with a point or exponent is not whole.
  std::optional<std::uint64_t> as_u64() const;
  std::optional<std::int64_t> as_i64() const;
  std::optional<double> as_double() const;  // of any number
  // nullptr when it is something else.
  const std::string* as_string() const { return std::get_if<std::string>(&rep_); }
  const Array* as_array() const { return std::get_if<Array>(&rep_); }
  const Object* as_object() const { return std::get_if<Object>(&rep_); }
  // "null", "a boolean", "a number", "a string", "an array" or "an object", for messages.
  std::string_view kind_name() const;

  // The member of an object, or nullptr when there is none or this is no object.
  const Json* find(std::string_view name) const;
  // Adds or replaces a member; this must be an object.
  Json& set(std::string name, Json value);
  // Adds an item; this must be an array.
  void push_back(Json value);

 private:
  friend class JsonBuilder;
  std::variant<std::monostate, bool, std::uint64_t, std::int64_t, double, std::string, Array,
               Object>
      rep_;
};

struct JsonMember {
  std::string name;
  Json value;
};

inline Json::Json() noexcept = default;
inline Json::Json(const Json& other) = default;
inline Json::Json(Json&& other) noexcept = default;
inline Json& Json::operator=(const Json& other) = default;
inline Json& Json::operator=(Json&& other) noexcept = default;
inline Json::~Json() = default;

inline constexpr std::size_t kJsonDepthMax = 64;

// Parses one JSON text (RFC 8259, UTF-8). Duplicate names, NaN, nesting deeper than kJsonDepthMax
// and anything after the value are Corrupt, with the byte position. Memory is proportional to the
// text, which the caller has bounded.
Result<Json> parse_json(std::string_view text);

// One canonical text, the same as Python's json.dumps(sort_keys=True): names in code point order,
// ", " and ": " as separators, everything beyond ASCII escaped.
std::string dump_json(const Json& value);

}  // namespace headrace
