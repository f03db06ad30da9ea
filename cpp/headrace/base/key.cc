#include "headrace/base/key.h"

#include <algorithm>
#include <string>

namespace headrace {
namespace {

Status refuse(std::string_view key, std::string_view why) {
  std::string shown;
  for (const char c : key.substr(0, 120)) {
    shown.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c);
  }
  if (key.size() > 120) shown += "...";
  return invalid_argument("the name '" + shown + "' " + std::string(why) +
                          "; names are relative to the data set's root and stay inside it");
}

}  // namespace

Status check_key(std::string_view key) {
  if (key.empty()) return refuse(key, "is empty");
  if (key.size() > kKeyBytesMax) {
    return refuse(key, "is " + std::to_string(key.size()) + " bytes long, and at most " +
                           std::to_string(kKeyBytesMax) + " are possible");
  }
  if (key.front() == '/') return refuse(key, "is absolute");
  for (const char c : key) {
    if (c == '\0') return refuse(key, "holds a NUL byte");
    if (c == '\\') return refuse(key, "holds a backslash");
  }
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t slash = std::min(key.find('/', begin), key.size());
    const std::string_view component = key.substr(begin, slash - begin);
    if (component.empty()) return refuse(key, "has an empty component");
    if (component == "." || component == "..") {
      return refuse(key, "has the component '" + std::string(component) + "'");
    }
    begin = slash + 1;
  }
  return Status::ok();
}

}  // namespace headrace
