// HttpTransport: sends one HTTP request and delivers the answer's body straight to its place.
// Thread-safety: submit, cancel and close from any thread; callbacks come from the transport's own
// thread and must be quick.
// Ownership: a request's destination and callbacks must live until its `done` was called.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/bytes.h"
#include "headrace/base/clock.h"
#include "headrace/base/status.h"
#include "headrace/store/byte_source.h"
#include "headrace/store/http_message.h"

namespace headrace::store {

// Where the body of an answer goes.
struct BodyPlan {
  // Exactly this much is expected; nothing (the default) keeps the body as text, up to 64 KiB.
  std::optional<MutableBytes> into{};
  // The rest of a longer body is not wanted; without it a longer body is an error.
  bool cut = false;
};

struct HttpResponse {
  // Ok when a whole answer arrived, whatever its status code; otherwise why not.
  Status transport{};
  HttpHead head{};
  std::string text{};           // body, unless it went to BodyPlan::into
  std::uint64_t delivered = 0;  // bytes written to BodyPlan::into, also when the transfer failed
};

struct HttpRequest {
  std::string method;
  std::string url;                     // complete and percent-encoded; sent as it is
  std::vector<std::string> headers{};  // "Name: value"
  std::shared_ptr<const std::string> body{};
  ByteRange body_range{};  // the part of `body` to send
  TimePoint deadline = kForever;
  Priority priority = Priority::kDemand;
  // How long the first byte of the answer may take after the request was sent, when that is not
  // the stall timeout (servers work for long before they answer some requests).
  std::optional<Duration> answer_timeout{};
  // Asked once, before the first byte of the body; an error ends the request with it.
  std::function<Result<BodyPlan>(const HttpHead&)> on_head{};
  std::function<void(HttpResponse)> done;  // exactly once
};

struct TransportOptions {
  std::uint32_t connections = 16;  // in flight at once; others wait by priority, deadline, arrival
  Duration connect_timeout = std::chrono::seconds(5);  // name, TCP and TLS together
  Duration stall_timeout = std::chrono::seconds(10);
  std::string ca_bundle{};  // PEM file; empty: the system's
  // Looks up proxy variables (http_proxy, https_proxy, all_proxy, no_proxy), as curl has them.
  std::function<std::optional<std::string>(std::string_view)> env{};
};

class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  // The id is for cancel(). Once closed, `done` is called before this returns.
  virtual std::uint64_t submit(HttpRequest request) = 0;
  // Ends the request with Cancelled, soon; without effect when it has ended.
  virtual void cancel(std::uint64_t id) = 0;
  // Ends all with Cancelled and stops the thread; later requests end with Cancelled. Idempotent.
  virtual void close() = 0;
};

// HTTP/1.1 by libcurl's multi interface, one reactor thread with an epoll of its own.
Result<std::unique_ptr<HttpTransport>> make_curl_transport(TransportOptions options,
                                                           const Clock& clock);

}  // namespace headrace::store
