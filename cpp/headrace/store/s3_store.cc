#include "headrace/store/s3_store.h"

#include <string>
#include <utility>

#include "headrace/store/remote_store.h"
#include "headrace/store/s3_credentials.h"
#include "headrace/store/s3_dialect.h"
#include "headrace/store/s3_upload.h"

namespace headrace::store {
namespace {

class S3Store final : public RemoteStore {
 public:
  S3Store(const StoreDeps& deps, const StoreOptions& options,
          std::unique_ptr<HttpTransport> transport, std::unique_ptr<Dialect> dialect)
      : RemoteStore(deps, options, std::move(transport), std::move(dialect)) {}
  ~S3Store() override { close(); }

  void put(PutRequest request) override;
  void remove(RemoveRequest request) override;
};

void S3Store::put(PutRequest request) {
  Status bad = check_key(request.key);
  if (bad.is_ok() && !request.body) {
    bad = invalid_argument("a put of '" + request.key + "' needs a body");
  }
  auto pass = port().enter();
  if (!pass.is_ok()) bad = pass.status();
  auto held = std::make_shared<std::optional<exec::Gate::Pass>>();
  if (pass.is_ok()) held->emplace(std::move(pass).value());
  if (!bad.is_ok()) {
    port().finish(std::move(*held), std::move(request.done), Result<ObjectInfo>(bad));
    return;
  }
  const TimePoint started = port().now();
  const std::uint64_t size = request.body->size();
  auto done = [this, held, started, size,
               done = std::move(request.done)](Result<ObjectInfo> result) mutable {
    port().count(result.status(), result.is_ok() ? size : 0, started);
    port().finish(std::move(*held), std::move(done), std::move(result));
  };
  request.done = nullptr;
  const TimePoint deadline = deadline_of(request.deadline);
  auto upload = std::make_shared<S3Upload>(port(), caller(), dialect(), std::move(request),
                                           deadline, std::move(done));
  port().executor().post([upload] { upload->begin(); });
}

void S3Store::remove(RemoveRequest request) {
  Status bad = check_key(request.key);
  auto pass = port().enter();
  if (!pass.is_ok()) bad = pass.status();
  auto held = std::make_shared<std::optional<exec::Gate::Pass>>();
  if (pass.is_ok()) held->emplace(std::move(pass).value());
  if (!bad.is_ok()) {
    port().finish(std::move(*held), std::move(request.done), bad);
    return;
  }
  auto ask = std::make_shared<Ask>(Ask{.method = "DELETE", .key = request.key});
  auto trail = std::make_shared<Trail>();
  HttpCall call;
  call.what = "removing " + describe(request.key);
  call.deadline = deadline_of(request.deadline);
  call.build = [this, ask, trail] { return dialect().build(*ask, *trail); };
  call.judge = [this, ask, trail](HttpResponse& response) -> Verdict {
    if (!response.transport.is_ok()) return {.status = response.transport};
    if (response.head.is_success()) return {};
    Verdict verdict = dialect().refuse(*ask, response, *trail);
    // What is not there counts as removed; a missing bucket does not.
    const bool bucket = response.text.find("NoSuchBucket") != std::string::npos;
    if (response.head.status == 404 && !bucket) verdict = {};
    return verdict;
  };
  call.done = [this, held, started = port().now(),
               done = std::move(request.done)](Status status) mutable {
    port().count(status, 0, started);
    port().finish(std::move(*held), std::move(done), std::move(status));
  };
  caller().start(std::move(call));
}

}  // namespace

Result<std::unique_ptr<ObjectStore>> open_s3_store(std::string_view url,
                                                   const StoreOptions& options,
                                                   const StoreDeps& deps) {
  HR_ASSIGN(S3Identity identity, find_s3_identity(options, deps));
  StoreOptions resolved = options;
  resolved.ca_bundle = identity.ca_bundle;
  HR_ASSIGN(auto dialect, S3Dialect::make(url, std::move(identity), deps.executor.clock()));
  HR_ASSIGN(auto transport,
            make_curl_transport(transport_options(resolved, deps), deps.executor.clock()));
  return std::unique_ptr<ObjectStore>(
      std::make_unique<S3Store>(deps, resolved, std::move(transport), std::move(dialect)));
}

}  // namespace headrace::store
