// S3Dialect: URLs, signatures and refusals of S3 and of what is compatible with it.
// Thread-safety: any thread; what the store teaches (region, clock) is kept under a mutex.
// Ownership: values.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "headrace/base/mutex.h"
#include "headrace/store/remote_store.h"
#include "headrace/store/s3_credentials.h"
#include "headrace/store/url.h"

namespace headrace::store {

class S3Dialect final : public Dialect {
 public:
  // `url` is "s3://bucket/prefix".
  static Result<std::unique_ptr<S3Dialect>> make(std::string_view url, S3Identity identity,
                                                 const Clock& clock);

  std::string describe(std::string_view key) const override;
  Result<HttpRequest> build(const Ask& ask, const Trail& trail) override HR_EXCLUDES(mutex_);
  Verdict refuse(const Ask& ask, const HttpResponse& response, Trail& trail) override
      HR_EXCLUDES(mutex_);
  bool may_get_instead_of_head(int) const override { return false; }

 private:
  S3Dialect(S3Identity identity, const Clock& clock)
      : identity_(std::move(identity)), clock_(clock), region_(identity_.region) {}

  // How a refusal is treated, without the corrections that refuse() tries first.
  Verdict final_refusal(const HttpResponse& response) const;
  // Scheme, host and path of a request, for the region it is signed for.
  Url url_of(std::string_view key, const std::string& region) const;
  bool correct_region(const HttpResponse& response, const std::string& told, Trail& trail)
      HR_EXCLUDES(mutex_);
  bool correct_clock(const HttpResponse& response, std::string_view code, Trail& trail)
      HR_EXCLUDES(mutex_);

  const S3Identity identity_;
  const Clock& clock_;
  std::string bucket_;
  std::string prefix_;    // empty, or ending with '/'
  Url endpoint_;          // host empty: Amazon's, which follows the region
  bool in_host_ = false;  // bucket in the host name, not in the path

  Mutex mutex_;
  std::string region_ HR_GUARDED_BY(mutex_);
  // The store's clock minus ours.
  std::int64_t clock_offset_ HR_GUARDED_BY(mutex_) = 0;
};

}  // namespace headrace::store
