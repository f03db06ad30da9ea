// FaultService: the objects of the fault server and its right answers, without any socket.
// Thread-safety: any thread.
// Ownership: owns its objects.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/testing/fault_server.h"

namespace headrace::testing {

struct Answer {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  bool is_head = false;

  void set(const std::string& name, const std::string& value);
};

class FaultService {
 public:
  explicit FaultService(FaultServerOptions options) : options_(std::move(options)) {}

  Answer answer(const SignedRequest& request, bool ignore_range) HR_EXCLUDES(mutex_);
  // The key that a target names; nothing when it names no object.
  std::optional<std::string> key_of(const SignedRequest& request) const;
  void set(const std::string& key, std::string bytes) HR_EXCLUDES(mutex_);
  std::optional<std::string> get(const std::string& key) const HR_EXCLUDES(mutex_);
  std::size_t open_uploads() const HR_EXCLUDES(mutex_);
  std::int64_t now() const;

 private:
  using Query = std::map<std::string, std::string>;

  Answer error(int status, const std::string& code, const std::string& extra = {}) const;
  Answer serve(const SignedRequest& request, const std::string& key, bool ignore_range) const
      HR_REQUIRES(mutex_);
  Answer write(const SignedRequest& request, const std::string& key) HR_REQUIRES(mutex_);
  Answer multipart(const SignedRequest& request, const std::string& key, const Query& query)
      HR_REQUIRES(mutex_);
  void add_version(Answer& answer, const std::string& etag) const;

  const FaultServerOptions options_;
  mutable Mutex mutex_;
  struct Object {
    std::string bytes;
    std::string etag;  // hashed once, because large objects are asked for often
  };
  std::map<std::string, Object> objects_ HR_GUARDED_BY(mutex_);
  std::map<std::string, std::map<int, std::string>> uploads_ HR_GUARDED_BY(mutex_);
  int next_upload_ HR_GUARDED_BY(mutex_) = 1;
};

// The value of a header, lower-case name; empty when it is not there.
std::string header_of(const SignedRequest& request, const std::string& name);

}  // namespace headrace::testing
