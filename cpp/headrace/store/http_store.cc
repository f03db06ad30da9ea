#include "headrace/store/http_store.h"

#include <string>
#include <utility>

#include "headrace/store/remote_store.h"
#include "headrace/store/url.h"

namespace headrace::store {
namespace {

constexpr int kRedirectsMax = 5;

class HttpDialect final : public Dialect {
 public:
  HttpDialect(Url root, const Clock& clock) : root_(std::move(root)), clock_(clock) {
    if (root_.path.ends_with('/')) root_.path.pop_back();
  }

  std::string describe(std::string_view key) const override {
    return root_.without_query() + (key.empty() ? "" : "/" + percent_encode(key, true));
  }

  Result<HttpRequest> build(const Ask& ask, const Trail& trail) override {
    HttpRequest request;
    request.method = ask.method;
    request.url = trail.url.empty() ? url_of(ask.key) : trail.url;
    for (const auto& [name, value] : ask.headers) request.headers.push_back(name + ": " + value);
    // Bytes are wanted as they are stored: ranges of an encoded body would be other bytes.
    request.headers.emplace_back("accept-encoding: identity");
    return request;
  }

  Verdict refuse(const Ask& ask, const HttpResponse& response, Trail& trail) override;
  bool may_get_instead_of_head(int status) const override {
    return status == 403 || status == 405 || status == 501;
  }

 private:
  std::string url_of(std::string_view key) const {
    std::string url = describe(key);
    if (!root_.query.empty()) url += "?" + root_.query;
    return url;
  }
  Verdict follow(const Ask& ask, const HttpResponse& response, Trail& trail) const;

  Url root_;
  const Clock& clock_;
};

Verdict HttpDialect::follow(const Ask& ask, const HttpResponse& response, Trail& trail) const {
  const std::string* location = response.head.find("location");
  if (!location) return {.status = corrupt("the server redirects to nowhere"), .last = true};
  if (++trail.redirects > kRedirectsMax) {
    return {.status = corrupt("the server redirects more than 5 times"), .last = true};
  }
  const auto here = parse_http_url(trail.url.empty() ? url_of(ask.key) : trail.url);
  if (!here.is_ok()) return {.status = here.status(), .last = true};
  const auto there = resolve(*here, *location);
  if (!there.is_ok()) {
    return {.status = there.status().with_context("a redirect leads to no usable URL"),
            .last = true};
  }
  // From http to https of the same host is what most servers with both do.
  const bool upgrade = here->scheme == "http" && there->scheme == "https" &&
                       here->host == there->host && here->port.empty() && there->port.empty();
  if (!same_origin(*here, *there) && !upgrade) {
    return {.status = denied("the server redirects to another host (" + there->authority() +
                             "), which is not followed; open the data set there, at " +
                             there->scheme + "://" + there->authority()),
            .last = true};
  }
  trail.url = there->without_query() + (there->query.empty() ? "" : "?" + there->query);
  return {.again = true};
}

Verdict HttpDialect::refuse(const Ask& ask, const HttpResponse& response, Trail& trail) {
  const int code = response.head.status;
  const std::string answered = "the server answers " + std::to_string(code);
  if (response.head.is_redirect()) return follow(ask, response, trail);
  Verdict verdict;
  if (const std::string* pause = response.head.find("retry-after")) {
    verdict.retry_after = parse_retry_after(*pause, clock_.unix_seconds());
  }
  if (code == 404 || code == 410) {
    verdict.status = not_found(answered + ": there is no such object; check the URL");
  } else if (code == 401 || code == 403 || code == 407) {
    verdict.status = denied(answered + ": it wants credentials, or another address, to serve this");
  } else if (code == 429 || code == 503) {
    verdict.status = throttled(answered + ": it asks for fewer requests");
  } else if (code == 408 || code == 425 || (code >= 500 && code != 501 && code != 505)) {
    verdict.status = unavailable(answered);
  } else if (code == 405 || code == 501 || code == 505) {
    verdict.status = unimplemented(answered + ": it does not do " + ask.method + " requests");
  } else {
    verdict.status = invalid_argument(answered + "; it does not take this request");
  }
  return verdict;
}

class HttpStore final : public RemoteStore {
 public:
  HttpStore(const StoreDeps& deps, const StoreOptions& options,
            std::unique_ptr<HttpTransport> transport, std::unique_ptr<Dialect> dialect)
      : RemoteStore(deps, options, std::move(transport), std::move(dialect)) {}

  void put(PutRequest request) override {
    refuse_write(request.key, [&](const Status& status) {
      port().finish(std::nullopt, std::move(request.done), Result<ObjectInfo>(status));
    });
  }
  void remove(RemoveRequest request) override {
    refuse_write(request.key, [&](const Status& status) {
      port().finish(std::nullopt, std::move(request.done), status);
    });
  }

 private:
  template <typename Answer>
  void refuse_write(const std::string& key, Answer answer) {
    const Status bad = check_key(key);
    answer(!bad.is_ok() ? bad
                        : unimplemented(describe(key) +
                                        ": nothing can be written over plain http(s); write to a "
                                        "local path or to s3://"));
  }
};

}  // namespace

Result<std::unique_ptr<ObjectStore>> open_http_store(std::string_view url,
                                                     const StoreOptions& options,
                                                     const StoreDeps& deps) {
  HR_ASSIGN(Url root, parse_http_url(url));
  HR_ASSIGN(auto transport,
            make_curl_transport(transport_options(options, deps), deps.executor.clock()));
  auto dialect = std::make_unique<HttpDialect>(std::move(root), deps.executor.clock());
  return std::unique_ptr<ObjectStore>(
      std::make_unique<HttpStore>(deps, options, std::move(transport), std::move(dialect)));
}

}  // namespace headrace::store
