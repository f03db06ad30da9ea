#include "headrace/store/url.h"

#include <algorithm>

namespace headrace::store {
namespace {

constexpr std::size_t kUrlBytesMax = 16384;

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Status split_authority(std::string_view authority, Url& url) {
  if (authority.find('@') != std::string_view::npos) {
    return invalid_argument(
        "a URL must not carry a user name or password; use credentials from the environment");
  }
  std::size_t host_end = authority.size();
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return invalid_argument("a URL has an unclosed '['");
    host_end = close + 1;
  } else {
    host_end = std::min(authority.find(':'), authority.size());
  }
  url.host = lower(authority.substr(0, host_end));
  if (url.host.empty()) return invalid_argument("a URL has no host");
  for (char c : url.host) {
    const bool ok = is_unreserved(c) || c == '[' || c == ']' || c == ':';
    if (!ok) return invalid_argument("the host of a URL has a character that hosts cannot have");
  }
  std::string_view rest = authority.substr(host_end);
  if (rest.empty()) return Status::ok();
  rest.remove_prefix(1);
  const bool digits =
      std::all_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (authority[host_end] != ':' || rest.empty() || rest.size() > 5 || !digits ||
      std::stoul(std::string(rest)) == 0 || std::stoul(std::string(rest)) > 65535) {
    return invalid_argument("the port of a URL is not a number from 1 to 65535");
  }
  url.port = std::to_string(std::stoul(std::string(rest)));
  if (url.port == (url.scheme == "https" ? "443" : "80")) url.port.clear();
  return Status::ok();
}

}  // namespace

std::string Url::authority() const { return port.empty() ? host : host + ":" + port; }
std::string Url::without_query() const { return scheme + "://" + authority() + path; }

Result<Url> parse_http_url(std::string_view text) {
  if (text.size() > kUrlBytesMax) return invalid_argument("a URL is longer than 16384 bytes");
  for (char c : text) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || c == '\\') {
      return invalid_argument("a URL has a blank, control character or backslash; encode it");
    }
  }
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) return invalid_argument("a URL lacks '://'");
  Url url;
  url.scheme = lower(text.substr(0, colon));
  if (url.scheme != "http" && url.scheme != "https") {
    return invalid_argument("only http:// and https:// URLs are meant here");
  }
  std::string_view rest = text.substr(colon + 3);
  if (rest.find('#') != std::string_view::npos) {
    return invalid_argument("a URL has a fragment ('#...'); encode '#' as %23 when it is a name");
  }
  const std::size_t question = rest.find('?');
  if (question != std::string_view::npos) {
    url.query = rest.substr(question + 1);
    rest = rest.substr(0, question);
  }
  const std::size_t slash = rest.find('/');
  if (slash != std::string_view::npos) url.path = rest.substr(slash);
  HR_TRY(split_authority(rest.substr(0, slash), url));
  return url;
}

std::string percent_encode(std::string_view text, bool keep_slash) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    if (is_unreserved(c) || (keep_slash && c == '/')) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.push_back('%');
      out.push_back(kDigits[byte >> 4]);
      out.push_back(kDigits[byte & 15]);
    }
  }
  return out;
}

Result<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) return invalid_argument("a '%' is not followed by two hex digits");
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return out;
}

Result<Url> resolve(const Url& base, std::string_view location) {
  if (location.starts_with("//")) return parse_http_url(base.scheme + ":" + std::string(location));
  if (location.find("://") != std::string_view::npos) return parse_http_url(location);
  std::string path(location);
  if (!path.starts_with('/')) {
    const std::size_t slash = base.path.rfind('/');
    path = (slash == std::string::npos ? "/" : base.path.substr(0, slash + 1)) + path;
  }
  return parse_http_url(base.scheme + "://" + base.authority() + path);
}

bool same_origin(const Url& a, const Url& b) {
  return a.scheme == b.scheme && a.host == b.host && a.port == b.port;
}

}  // namespace headrace::store
