#include "headrace/base/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

namespace headrace {

// Receives the events of the parser and builds the value, refusing what the text must not hold.
// Open containers are a stack of addresses; they stay valid because only the innermost one grows.
class JsonBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Json root;
  std::string problem;
  std::size_t position = 0;

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json::boolean(value)); }
  bool number_integer(number_integer_t value) override { return add(Json::number_signed(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add(Json::number(value)); }
  bool number_float(number_float_t value, const string_t&) override {
    return add(Json::number_double(value));
  }
  bool string(string_t& value) override { return add(Json::string(std::move(value))); }
  bool binary(binary_t&) override { return fail("binary values are not JSON"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool key(string_t& name) override {
    name_ = std::move(name);
    return true;
  }
  bool end_object() override {
    const auto& members = std::get<Json::Object>(stack_.back()->rep_);
    stack_.pop_back();
    return check_unique(members);
  }
  bool end_array() override {
    stack_.pop_back();
    return true;
  }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception& error) override {
    position = at;
    // The library's text begins with its own identifier in brackets.
    const std::string_view what = error.what();
    const std::size_t bracket = what.find("] ");
    return fail(std::string(bracket == what.npos ? what : what.substr(bracket + 2)));
  }

 private:
  bool fail(std::string what) {
    if (problem.empty()) problem = std::move(what);
    return false;
  }

  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  bool open(Json container) {
    if (stack_.size() == kJsonDepthMax) {
      return fail("nested deeper than " + std::to_string(kJsonDepthMax) + " levels");
    }
    stack_.push_back(place(std::move(container)));
    return true;
  }

  Json* place(Json value) {
    if (stack_.empty()) {
      root = std::move(value);
      return &root;
    }
    if (auto* array = std::get_if<Json::Array>(&stack_.back()->rep_)) {
      return &array->emplace_back(std::move(value));
    }
    auto& object = std::get<Json::Object>(stack_.back()->rep_);
    return &object.emplace_back(JsonMember{std::move(name_), std::move(value)}).value;
  }

  bool check_unique(const Json::Object& members) {
    if (members.size() <= 24) {
      for (std::size_t i = 1; i < members.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
          if (members[i].name == members[j].name) return duplicate(members[i].name);
        }
      }
      return true;
    }
    std::unordered_set<std::string_view> seen;
    seen.reserve(members.size());
    for (const JsonMember& member : members) {
      if (!seen.insert(member.name).second) return duplicate(member.name);
    }
    return true;
  }

  bool duplicate(const std::string& name) {
    return fail("the name '" + name.substr(0, 80) + "' occurs twice in one object");
  }

  std::vector<Json*> stack_;
  std::string name_;
};

Json Json::boolean(bool value) {
  Json json;
  json.rep_ = value;
  return json;
}
Json Json::number(std::uint64_t value) {
  Json json;
  json.rep_ = value;
  return json;
}
Json Json::number_signed(std::int64_t value) {
  Json json;
  if (value >= 0) {
    json.rep_ = static_cast<std::uint64_t>(value);
  } else {
    json.rep_ = value;
  }
  return json;
}
Json Json::number_double(double value) {
  Json json;
  json.rep_ = value;
  return json;
}
Json Json::string(std::string value) {
  Json json;
  json.rep_ = std::move(value);
  return json;
}
Json Json::array(Array items) {
  Json json;
  json.rep_ = std::move(items);
  return json;
}
Json Json::object() {
  Json json;
  json.rep_ = Object();
  return json;
}

std::optional<bool> Json::as_bool() const {
  if (const bool* value = std::get_if<bool>(&rep_)) return *value;
  return std::nullopt;
}
std::optional<std::uint64_t> Json::as_u64() const {
  if (const auto* value = std::get_if<std::uint64_t>(&rep_)) return *value;
  return std::nullopt;
}
std::optional<std::int64_t> Json::as_i64() const {
  if (const auto* value = std::get_if<std::int64_t>(&rep_)) return *value;
  if (const auto* value = std::get_if<std::uint64_t>(&rep_)) {
    if (*value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return static_cast<std::int64_t>(*value);
    }
  }
  return std::nullopt;
}
std::optional<double> Json::as_double() const {
  if (const auto* value = std::get_if<double>(&rep_)) return *value;
  if (const auto* value = std::get_if<std::uint64_t>(&rep_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<std::int64_t>(&rep_)) return static_cast<double>(*value);
  return std::nullopt;
}

std::string_view Json::kind_name() const {
  switch (rep_.index()) {
    case 0: return "null";
    case 1: return "a boolean";
    case 5: return "a string";
    case 6: return "an array";
    case 7: return "an object";
    default: return "a number";
  }
}

const Json* Json::find(std::string_view name) const {
  const Object* object = as_object();
  if (object == nullptr) return nullptr;
  for (const JsonMember& member : *object) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

Json& Json::set(std::string name, Json value) {
  auto* object = std::get_if<Object>(&rep_);
  HR_CHECK(object != nullptr, "members are set on objects only");
  for (JsonMember& member : *object) {
    if (member.name == name) {
      member.value = std::move(value);
      return *this;
    }
  }
  object->push_back({std::move(name), std::move(value)});
  return *this;
}

void Json::push_back(Json value) {
  auto* array = std::get_if<Array>(&rep_);
  HR_CHECK(array != nullptr, "items are added to arrays only");
  array->push_back(std::move(value));
}

Result<Json> parse_json(std::string_view text) {
  JsonBuilder builder;
  const bool is_done = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  if (!is_done || !builder.problem.empty()) {
    std::string where;
    if (builder.position > 0) where = " (at byte " + std::to_string(builder.position) + ")";
    return corrupt("not valid JSON: " + builder.problem + where);
  }
  return std::move(builder.root);
}

namespace {

void append_unit(std::string& out, unsigned unit) {
  static constexpr char kDigits[] = "0123456789abcdef";
  out += "\\u";
  for (const int shift : {12, 8, 4, 0}) out.push_back(kDigits[(unit >> shift) & 15]);
}

// One code point of well-formed UTF-8, beyond ASCII; anything else becomes U+FFFD.
std::size_t append_escaped(std::string& out, std::string_view rest) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (length == 0 || rest.size() < length) {
    append_unit(out, 0xfffd);
    return 1;
  }
  unsigned point = lead & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) point = (point << 6) | (byte(i) & 0x3f);
  if (point < 0x10000) {
    append_unit(out, point);
  } else {
    append_unit(out, 0xd800 + ((point - 0x10000) >> 10));
    append_unit(out, 0xdc00 + ((point - 0x10000) & 0x3ff));
  }
  return length;
}

void dump_string(std::string& out, std::string_view text) {
  out.push_back('"');
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) >= 0x80) {
      i += append_escaped(out, text.substr(i));
      continue;
    }
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\f': out += "\\f"; break;
      case '\b': out += "\\b"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          append_unit(out, static_cast<unsigned char>(c));
        } else {
          out.push_back(c);
        }
    }
    ++i;
  }
  out.push_back('"');
}

void dump_double(std::string& out, double value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
  out += digits;
  // Stays a number with a point when it is read again.
  if (digits.find_first_of(".en") == digits.npos) out += ".0";
}

void dump(std::string& out, const Json& value) {
  if (const auto* text = value.as_string()) return dump_string(out, *text);
  if (const auto* items = value.as_array()) {
    out.push_back('[');
    for (std::size_t i = 0; i < items->size(); ++i) {
      if (i > 0) out += ", ";
      dump(out, (*items)[i]);
    }
    out.push_back(']');
    return;
  }
  if (const auto* members = value.as_object()) {
    std::vector<const JsonMember*> sorted;
    for (const JsonMember& member : *members) sorted.push_back(&member);
    // UTF-8 sorts by bytes as code points do.
    std::sort(sorted.begin(), sorted.end(),
              [](const JsonMember* a, const JsonMember* b) { return a->name < b->name; });
    out.push_back('{');
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (i > 0) out += ", ";
      dump_string(out, sorted[i]->name);
      out += ": ";
      dump(out, sorted[i]->value);
    }
    out.push_back('}');
    return;
  }
  if (const auto truth = value.as_bool()) {
    out += *truth ? "true" : "false";
  } else if (const auto whole = value.as_u64()) {
    out += std::to_string(*whole);
  } else if (const auto negative = value.as_i64()) {
    out += std::to_string(*negative);
  } else if (const auto real = value.as_double()) {
    dump_double(out, *real);
  } else {
    out += "null";
  }
}

}  // namespace

std::string dump_json(const Json& value) {
  std::string out;
  dump(out, value);
  return out;
}

}  // namespace headrace
