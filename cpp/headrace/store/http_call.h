// HttpCall: one request with its retries: build, send, judge, wait, send again, until decided.
// Thread-safety: HttpCaller from any thread; the functions of one call never run at the same time.
// Ownership: a call lives until its `done` was called; transport and port outlive the caller.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "headrace/base/mutex.h"
#include "headrace/base/rng.h"
#include "headrace/obs/log.h"
#include "headrace/policy/retry.h"
#include "headrace/store/http_transport.h"
#include "headrace/store/port.h"

namespace headrace::store {

// What an answer means for its call.
struct Verdict {
  Status status{};     // ok ends the call with success
  bool again = false;  // send at once, without counting an attempt (redirect, clock, region)
  bool last = false;   // no further attempt, whatever the code says
  bool moved = false;  // bytes arrived: attempts are counted anew from here
  std::optional<Duration> retry_after{};
};

struct HttpCall {
  std::string what;  // "GET s3://bucket/key bytes 0-99", for messages
  TimePoint deadline = kForever;
  Priority priority = Priority::kDemand;
  std::stop_token stop{};
  bool stops_with_store = true;  // false for cleaning up, which goes on while the store closes
  // Called before each attempt, so that signatures are fresh and ranges go on where they stopped.
  std::function<Result<HttpRequest>()> build;
  std::function<Verdict(HttpResponse&)> judge;  // on the executor
  std::function<void(Status)> done;             // on the executor, exactly once
};

class HttpCaller {
 public:
  HttpCaller(Port& port, HttpTransport& transport, policy::RetryOptions retries,
             std::uint64_t jitter_seed, obs::LogSink log);
  ~HttpCaller();

  void start(HttpCall call);
  // Ends every call that stops with the store, also those to come. The store closes its port, which
  // waits for the completions, after this.
  void stop_all() HR_EXCLUDES(mutex_);

 private:
  class Running;

  Port& port_;
  HttpTransport& transport_;
  const policy::RetryOptions retries_;
  const obs::LogSink log_;
  Mutex mutex_;
  Rng rng_ HR_GUARDED_BY(mutex_);
  policy::RetryBudget budget_ HR_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::weak_ptr<Running>> running_ HR_GUARDED_BY(mutex_);
  std::uint64_t next_id_ HR_GUARDED_BY(mutex_) = 0;
  bool stopping_ HR_GUARDED_BY(mutex_) = false;
};

}  // namespace headrace::store
