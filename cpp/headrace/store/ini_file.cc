#include "headrace/store/ini_file.h"

namespace headrace::store {
namespace {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\f\v";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

Status bad_line(std::size_t number, std::string_view why) {
  return invalid_argument("line " + std::to_string(number) + " " + std::string(why));
}

class Parser {
 public:
  Result<IniFile> parse(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      ++number_;
      HR_TRY(line(text.substr(0, end)));
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    return std::move(file_);
  }

 private:
  Status line(std::string_view raw) {
    const std::string_view text = trim(raw);
    if (text.empty() || text.front() == '#' || text.front() == ';') return Status::ok();
    if (text.find('\0') != std::string_view::npos) return bad_line(number_, "has a NUL byte");
    const bool indented = raw.front() == ' ' || raw.front() == '\t';
    if (!indented && text.front() == '[') return section(text);
    const std::size_t equals = text.find('=');
    if (indented && !outer_.empty()) {
      // Below a name without a value these are names of their own; other indented lines continue
      // a value, which no setting read here has.
      if (equals != std::string_view::npos) {
        (*names_)[outer_ + "." + lower(trim(text.substr(0, equals)))] =
            trim(text.substr(equals + 1));
      }
      return Status::ok();
    }
    if (equals == std::string_view::npos || equals == 0) {
      return bad_line(number_, "is neither '[section]' nor 'name = value'");
    }
    if (!names_) return bad_line(number_, "stands before the first '[section]'");
    const std::string name = lower(trim(text.substr(0, equals)));
    const std::string_view value = trim(text.substr(equals + 1));
    (*names_)[name] = value;
    outer_ = value.empty() ? name : std::string();
    return Status::ok();
  }

  Status section(std::string_view text) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return bad_line(number_, "opens a '[section' without ']'");
    // Blanks inside are one: "[profile   x]".
    std::string name;
    for (char c : trim(text.substr(1, end - 1))) {
      const bool blank = c == ' ' || c == '\t';
      if (blank && name.ends_with(' ')) continue;
      name.push_back(blank ? ' ' : c);
    }
    if (name.empty()) return bad_line(number_, "has a section without a name");
    names_ = &file_[name];
    outer_.clear();
    return Status::ok();
  }

  IniFile file_;
  std::map<std::string, std::string>* names_ = nullptr;
  std::string outer_;  // the name without a value that indented lines belong to
  std::size_t number_ = 0;
};

}  // namespace

Result<IniFile> parse_ini(std::string_view text) {
  if (text.size() > kIniBytesMax) return invalid_argument("the file is larger than 1 MiB");
  return Parser().parse(text);
}

}  // namespace headrace::store
