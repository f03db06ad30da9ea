// URLs: parsed once, percent-encoded once, and shown without what may be secret.
// Thread-safety: pure functions.
// Ownership: values.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/status.h"

namespace headrace::store {

struct Url {
  std::string scheme;  // lower case
  std::string host;    // lower case, as sent: IPv6 addresses in brackets
  std::string port;    // empty: the scheme's own
  std::string path;    // as given, starting with '/' or empty
  std::string query;   // without '?'

  // "host:port", the port only when it is not the scheme's own; what the Host header says.
  std::string authority() const;
  // "http://host:8080/path", without the query.
  std::string without_query() const;
};

// http and https only. InvalidArgument for user:password@ (it would end up in logs), fragments,
// control characters, and what is not a URL. The text of a URL is never in the message.
Result<Url> parse_http_url(std::string_view text);

// Upper-case hexadecimal for every byte but A-Z a-z 0-9 - . _ ~, and '/' when `keep_slash`.
std::string percent_encode(std::string_view text, bool keep_slash);
// The reverse; InvalidArgument for a '%' without two digits.
Result<std::string> percent_decode(std::string_view text);

// Where `location` of a redirect leads, seen from `base`.
Result<Url> resolve(const Url& base, std::string_view location);
bool same_origin(const Url& a, const Url& b);

}  // namespace headrace::store
