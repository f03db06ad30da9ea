#include "headrace/store/open_store.h"

#include <string>
#include <utility>

#include "headrace/store/http_store.h"
#include "headrace/store/local_store.h"
#include "headrace/store/s3_store.h"
#include "headrace/store/url.h"

namespace headrace::store {
namespace {

Status check_options(const StoreOptions& options) {
  const auto out_of_range = [](std::string_view name, std::uint32_t value, std::string_view range) {
    return invalid_argument(std::string(name) + "=" + std::to_string(value) + " is not in " +
                            std::string(range));
  };
  if (options.connections < 1 || options.connections > 1024) {
    return out_of_range("connections", options.connections, "1..1024");
  }
  if (options.attempts < 1 || options.attempts > 20) {
    return out_of_range("attempts", options.attempts, "1..20");
  }
  if (options.request_timeout <= Duration(0) || options.stall_timeout <= Duration(0)) {
    return invalid_argument("request_timeout and stall_timeout must be longer than nothing");
  }
  if (options.addressing && *options.addressing != "path" && *options.addressing != "virtual") {
    return invalid_argument("addressing must be 'path' or 'virtual'");
  }
  return Status::ok();
}

// "file:///a/b" or "file://localhost/a/b" -> "/a/b".
Result<std::string> path_of_file_url(std::string_view rest) {
  if (rest.starts_with("localhost/")) rest.remove_prefix(9);
  if (!rest.starts_with('/')) {
    return invalid_argument("file://" + std::string(rest) +
                            " names a host; write file:///absolute/path, or the path alone");
  }
  return percent_decode(rest);
}

// The scheme in lower case; empty for a path.
std::string scheme_of(std::string_view url) {
  const std::size_t colon = url.find("://");
  if (colon == std::string_view::npos || colon == 0) return {};
  std::string scheme;
  for (char c : url.substr(0, colon)) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool other = (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
    if (!letter && (!other || scheme.empty())) return {};
    scheme.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return scheme;
}

Result<std::unique_ptr<ObjectStore>> open_local(std::string path, const StoreDeps& deps) {
  if (path.find('\0') != std::string::npos) {
    return invalid_argument("a path contains a NUL byte");
  }
  return std::unique_ptr<ObjectStore>(std::make_unique<LocalStore>(deps, std::move(path)));
}

}  // namespace

Result<std::unique_ptr<ObjectStore>> open_store(std::string_view url, const StoreOptions& options,
                                                const StoreDeps& deps) {
  HR_TRY(check_options(options));
  if (url.empty()) return invalid_argument("the place of a data set is an empty string");
  const std::string scheme = scheme_of(url);
  if (scheme.empty()) return open_local(std::string(url), deps);
  if (scheme == "file") {
    HR_ASSIGN(std::string path, path_of_file_url(url.substr(7)));
    return open_local(std::move(path), deps);
  }
  if (scheme == "http" || scheme == "https") return open_http_store(url, options, deps);
  if (scheme == "s3") {
    return open_s3_store("s3://" + std::string(url.substr(5)), options, deps);
  }
  return unimplemented("no store serves '" + scheme +
                       "://'; use a path, file://, s3://, http:// or https://");
}

Result<std::optional<std::string>> local_path(std::string_view url) {
  if (url.empty()) return invalid_argument("the place of a data set is an empty string");
  const std::string scheme = scheme_of(url);
  if (scheme.empty()) return std::optional<std::string>(url);
  if (scheme != "file") return std::optional<std::string>();
  HR_ASSIGN(std::string path, path_of_file_url(url.substr(7)));
  return std::optional<std::string>(std::move(path));
}

Result<ObjectUrl> split_object_url(std::string_view url) {
  const std::string scheme = scheme_of(url);
  const std::size_t start = scheme.empty() ? 0 : scheme.size() + 3;
  const std::string_view rest = url.substr(start);
  const std::size_t slash = rest.rfind('/');
  ObjectUrl out;
  if (slash == std::string_view::npos) {
    if (!scheme.empty()) return invalid_argument("a URL names a store but no object in it");
    out = {".", std::string(rest)};
  } else if (slash == 0 && scheme.empty()) {
    out = {"/", std::string(rest.substr(1))};
  } else {
    out = {std::string(url.substr(0, start + slash)), std::string(rest.substr(slash + 1))};
  }
  // A key is the name itself; in http and file URLs it stands percent-encoded.
  if (scheme == "http" || scheme == "https" || scheme == "file") {
    const std::size_t query = scheme == "file" ? std::string::npos : out.key.find('?');
    if (query != std::string::npos) {
      return invalid_argument("an object is named by a URL without a query ('?...') here");
    }
    HR_ASSIGN(out.key, percent_decode(out.key));
  }
  HR_TRY(check_key(out.key));
  return out;
}

}  // namespace headrace::store
