// RemoteStore: reading objects over HTTP by ranges, the part that plain HTTP and S3 share.
// Thread-safety: any thread.
// Ownership: owns its transport; a Dialect is owned by the store.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/store/http_call.h"
#include "headrace/store/http_transport.h"
#include "headrace/store/object_store.h"
#include "headrace/store/open_store.h"
#include "headrace/store/port.h"

namespace headrace::store {

// One request in words of HTTP, before it has a URL and a signature.
struct Ask {
  std::string method;
  std::string key;                                             // empty: the bucket itself
  std::vector<std::pair<std::string, std::string>> query{};    // not encoded
  std::vector<std::pair<std::string, std::string>> headers{};  // names in lower case
  std::shared_ptr<const std::string> body{};
  ByteRange body_range{};
  std::string body_sha256{};  // lower-case hexadecimal; empty when there is no body
};

// What one call remembers between its attempts, for the dialect alone.
struct Trail {
  std::string url{};  // where a redirect led
  int redirects = 0;
  bool clock_corrected = false;
  bool region_corrected = false;
};

// What a family of servers wants: URLs, signatures, and how they say no.
class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual std::string describe(std::string_view key) const = 0;
  virtual Result<HttpRequest> build(const Ask& ask, const Trail& trail) = 0;
  // Judges an answer that is neither a success nor about the range or version asked for.
  virtual Verdict refuse(const Ask& ask, const HttpResponse& response, Trail& trail) = 0;
  // True when HEAD is refused in a way that leaves hope for GET.
  virtual bool may_get_instead_of_head(int status) const = 0;
};

class RemoteStore : public ObjectStore {
 public:
  ~RemoteStore() override;

  void submit(ReadRequest request) override;
  Result<std::optional<Peeked>> peek(const ObjectRef& object) override;
  std::string describe(std::string_view key) const override;
  void close() override;
  void head(HeadRequest request) override;

 protected:
  RemoteStore(const StoreDeps& deps, const StoreOptions& options,
              std::unique_ptr<HttpTransport> transport, std::unique_ptr<Dialect> dialect);

  Port& port() { return port_; }
  HttpCaller& caller() { return caller_; }
  Dialect& dialect() { return *dialect_; }
  // The deadline of a request that names none.
  TimePoint deadline_of(TimePoint wanted) const;

 private:
  const Duration request_timeout_;
  Port port_;
  std::unique_ptr<Dialect> dialect_;
  std::unique_ptr<HttpTransport> transport_;
  HttpCaller caller_;
};

// Options of the transport that follow from those of the store.
TransportOptions transport_options(const StoreOptions& options, const StoreDeps& deps);

}  // namespace headrace::store
