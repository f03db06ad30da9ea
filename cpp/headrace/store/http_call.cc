// A call is in one of three places: in the transport, waiting for its next attempt, or ended. Its
// mutex guards only that place; build, judge and done run outside of it, one after the other, on
// the executor (the first build on the caller's thread). Whoever wants to stop a call notes why:
// one in the transport is cancelled there and ends when the transport lets go of the destination,
// a waiting one ends at once.
#include "headrace/store/http_call.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace headrace::store {
namespace {

// Immediate repeats of one call (redirects, one clock correction, one region); more is a loop.
constexpr int kRepeatsMax = 8;

}  // namespace

class HttpCaller::Running : public std::enable_shared_from_this<Running> {
 public:
  Running(HttpCaller& caller, HttpCall call, std::uint64_t id)
      : caller_(caller), call_(std::move(call)), id_(id) {}

  bool stops_with_store() const { return call_.stops_with_store; }

  void begin() {
    // First, because the call may end on another thread before attempt() returns. When a stop was
    // requested already, this calls stop() at once, and attempt() finds its reason.
    if (call_.stop.stop_possible()) on_stop_.emplace(call_.stop, Stop{weak_from_this()});
    attempt();
  }

  void stop(const Status& why) HR_EXCLUDES(mutex_) {
    std::uint64_t transfer = 0;
    bool end_now = false;
    {
      MutexLock lock(mutex_);
      if (!stopped_.is_ok() || place_ == Place::kEnded) return;
      stopped_ = why;
      if (place_ == Place::kTransport) transfer = transfer_;
      end_now = place_ == Place::kWaiting;
      if (end_now) place_ = Place::kEnded;
    }
    if (transfer != 0) caller_.transport_.cancel(transfer);
    if (end_now) post_end(why);
  }

 private:
  enum class Place { kTransport, kWaiting, kEnded };
  struct Stop {
    std::weak_ptr<Running> call;
    void operator()() const {
      if (auto alive = call.lock()) alive->stop(cancelled("the request was stopped"));
    }
  };

  Status admit() HR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!stopped_.is_ok()) return stopped_;
    if (caller_.port_.now() >= call_.deadline) {
      return deadline_exceeded("the deadline passed before the request was sent");
    }
    return Status::ok();
  }

  void attempt() HR_EXCLUDES(mutex_) {
    const Status admitted = admit();
    Result<HttpRequest> request = admitted.is_ok() ? call_.build() : admitted;
    if (!request.is_ok()) {
      post_end(request.status());
      return;
    }
    request->deadline = call_.deadline;
    request->priority = call_.priority;
    request->done = [self = shared_from_this()](HttpResponse response) mutable {
      Running* call = self.get();
      call->caller_.port_.executor().post(
          [self = std::move(self), response = std::move(response)]() mutable {
            self->answered(response);
          });
    };
    {
      MutexLock lock(mutex_);
      place_ = Place::kTransport;
      transfer_ = 0;
    }
    const std::uint64_t transfer = caller_.transport_.submit(std::move(request).value());
    bool cancel = false;
    {
      MutexLock lock(mutex_);
      transfer_ = transfer;
      // A stop that came before the id was known could not cancel it.
      cancel = !stopped_.is_ok();
    }
    if (cancel) caller_.transport_.cancel(transfer);
  }

  void answered(HttpResponse& response) HR_EXCLUDES(mutex_) {
    Status stopped;
    {
      MutexLock lock(mutex_);
      stopped = stopped_;
    }
    Verdict verdict;
    if (!stopped.is_ok()) {
      verdict = {.status = stopped, .last = true};
    } else {
      verdict = call_.judge(response);
    }
    if (verdict.again && ++repeats_ <= kRepeatsMax) {
      attempt();
      return;
    }
    if (verdict.again) verdict = {.status = corrupt("the store answers in circles"), .last = true};
    if (verdict.status.is_ok()) {
      MutexLock lock(caller_.mutex_);
      caller_.budget_.refund(last_cost_);
    }
    if (verdict.status.is_ok() || verdict.last) {
      end(verdict.status);
      return;
    }
    retry(verdict);
  }

  void retry(const Verdict& verdict) HR_EXCLUDES(mutex_) {
    ++attempts_;
    attempts_counted_ = verdict.moved ? 1 : attempts_counted_ + 1;
    const TimePoint now = caller_.port_.now();
    policy::RetryDecision decision;
    {
      MutexLock lock(caller_.mutex_);
      decision = policy::decide(caller_.retries_, caller_.budget_,
                                {.code = verdict.status.code(),
                                 .attempts_made = attempts_counted_,
                                 .retry_after = verdict.retry_after,
                                 .now = now,
                                 .deadline = call_.deadline},
                                caller_.rng_.uniform());
    }
    if (!decision.is_retry()) {
      const bool tried = decision.stop != policy::RetryStop::kClass;
      end(!tried ? verdict.status
                 : Status(verdict.status.code(),
                          verdict.status.message() + " (attempt " + std::to_string(attempts_) +
                              "; " + std::string(policy::retry_stop_text(decision.stop)) + ")"));
      return;
    }
    last_cost_ = decision.cost;
    caller_.port_.count_retry();
    obs::log(caller_.log_, obs::Level::kInfo, "store.retry",
             call_.what + ": " + verdict.status.message());
    {
      MutexLock lock(mutex_);
      place_ = Place::kWaiting;
      if (!stopped_.is_ok()) place_ = Place::kEnded;
      if (place_ == Place::kEnded) {
        post_end(stopped_);
        return;
      }
    }
    caller_.port_.executor().post_at(now + decision.wait, [self = shared_from_this()] {
      {
        MutexLock lock(self->mutex_);
        if (self->place_ != Place::kWaiting) return;
        self->place_ = Place::kTransport;
        self->transfer_ = 0;
      }
      self->attempt();
    });
  }

  void post_end(const Status& status) {
    caller_.port_.executor().post([self = shared_from_this(), status] { self->end(status); });
  }

  void end(const Status& status) HR_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      place_ = Place::kEnded;
    }
    {
      MutexLock lock(caller_.mutex_);
      caller_.running_.erase(id_);
    }
    auto done = std::move(call_.done);
    call_.build = nullptr;
    call_.judge = nullptr;
    const Status named = status.with_context(call_.what);
    on_stop_.reset();
    // The caller may be gone once `done` has given its pass back.
    done(named);
  }

  HttpCaller& caller_;
  HttpCall call_;
  const std::uint64_t id_;
  std::uint32_t attempts_ = 0;          // failed ones
  std::uint32_t attempts_counted_ = 0;  // failed ones since bytes last arrived
  std::uint32_t last_cost_ = 0;
  int repeats_ = 0;
  std::optional<std::stop_callback<Stop>> on_stop_;

  Mutex mutex_;
  Place place_ HR_GUARDED_BY(mutex_) = Place::kTransport;
  std::uint64_t transfer_ HR_GUARDED_BY(mutex_) = 0;
  Status stopped_ HR_GUARDED_BY(mutex_);
};

HttpCaller::HttpCaller(Port& port, HttpTransport& transport, policy::RetryOptions retries,
                       std::uint64_t jitter_seed, obs::LogSink log)
    : port_(port),
      transport_(transport),
      retries_(retries),
      log_(std::move(log)),
      rng_(jitter_seed) {}

HttpCaller::~HttpCaller() = default;

void HttpCaller::start(HttpCall call) {
  std::shared_ptr<Running> running;
  std::optional<HttpCall> refused;
  {
    MutexLock lock(mutex_);
    if (stopping_ && call.stops_with_store) {
      refused = std::move(call);
    } else {
      running = std::make_shared<Running>(*this, std::move(call), ++next_id_);
      running_.emplace(next_id_, running);
    }
  }
  if (refused) {
    port_.executor().post([done = std::move(refused->done), what = std::move(refused->what)] {
      done(cancelled("the store was closed").with_context(what));
    });
    return;
  }
  running->begin();
}

void HttpCaller::stop_all() {
  std::vector<std::shared_ptr<Running>> all;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    for (auto& [id, weak] : running_) {
      if (auto alive = weak.lock(); alive && alive->stops_with_store()) {
        all.push_back(std::move(alive));
      }
    }
  }
  for (const auto& call : all) call->stop(cancelled("the store was closed"));
}

}  // namespace headrace::store
