#include "headrace/store/remote_store.h"

#include <algorithm>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/store/ranged_read.h"

namespace headrace::store {
namespace {

// All parts of one submit(): they fill one destination and end in one completion.
class ReadOp : public std::enable_shared_from_this<ReadOp> {
 public:
  ReadOp(Port& port, HttpCaller& caller, Dialect& dialect, ReadRequest request, TimePoint deadline,
         exec::Gate::Pass pass)
      : port_(port),
        caller_(caller),
        request_(std::move(request)),
        deadline_(deadline),
        started_(port.now()),
        pass_(std::move(pass)),
        dialect_(dialect) {}

  void begin() {
    if (request_.stop.stop_possible()) {
      on_stop_.emplace(request_.stop, [source = stop_source_]() mutable { source.request_stop(); });
    }
    ranges_ = merge_adjacent(request_.ranges);
    if (request_.object.size) {
      const auto inside =
          clip_ranges(request_.ranges, *request_.object.size, request_.may_be_short, name());
      if (!inside.is_ok()) return end(inside.status());
    }
    if (ranges_.empty()) ranges_.push_back({0, 0});
    parts_.resize(ranges_.size());
    // Without a pin the first part finds out which version the others must be of.
    const bool all = !request_.object.pin.empty() || ranges_.size() == 1;
    start(0, all ? ranges_.size() : 1, 0);
  }

 private:
  std::string name() const { return dialect_.describe(request_.object.key); }

  // Starts parts [from, to); the bytes of part `from` belong at `place` of the destination.
  void start(std::size_t from, std::size_t to, std::uint64_t place) HR_EXCLUDES(mutex_) {
    std::vector<HttpCall> calls;
    for (std::size_t i = from; i < to; ++i) {
      const ByteRange range = ranges_[i];
      const bool may_be_short = request_.may_be_short && i + 1 == ranges_.size();
      parts_[i] =
          std::make_shared<RangedRead>(dialect_, request_.object, range, may_be_short,
                                       request_.destination.bytes().subspan(place, range.length));
      place += range.length;
      HttpCall call;
      call.deadline = deadline_;
      call.priority = request_.priority;
      call.stop = stop_source_.get_token();
      parts_[i]->equip(call);
      call.done = [self = shared_from_this(), place](const Status& status) {
        self->part_done(status, place);
      };
      calls.push_back(std::move(call));
    }
    {
      MutexLock lock(mutex_);
      open_ += calls.size();
      started_parts_ = to;
    }
    for (HttpCall& call : calls) caller_.start(std::move(call));
  }

  void part_done(const Status& status, std::uint64_t place) HR_EXCLUDES(mutex_) {
    bool ended = false;
    bool first_failure = false;
    std::size_t next = 0;
    Status error;
    {
      MutexLock lock(mutex_);
      --open_;
      first_failure = !status.is_ok() && error_.is_ok();
      if (first_failure) error_ = status;
      error = error_;
      next = started_parts_;
      ended = open_ == 0 && (next == ranges_.size() || !error.is_ok());
    }
    // The others would be read for nothing.
    if (first_failure) stop_source_.request_stop();
    if (ended) return end(error);
    if (next < ranges_.size() && error.is_ok()) {
      const ObjectInfo& info = parts_.front()->info();
      request_.object.pin = info.pin;
      request_.object.size = info.size;
      start(next, ranges_.size(), place);
    }
  }

  Result<ReadReply> reply() {
    ReadReply out;
    out.info = parts_.front()->info();
    HR_ASSIGN(const auto ranges,
              clip_ranges(request_.ranges, out.info.size, request_.may_be_short, name()));
    for (const auto& part : parts_) out.length += part->delivered();
    if (out.length != total_length(ranges)) {
      return internal_error(name() + ": " + std::to_string(out.length) + " bytes were read, and " +
                            std::to_string(total_length(ranges)) + " expected");
    }
    out.memory = std::move(request_.destination);
    return out;
  }

  void end(const Status& status) {
    on_stop_.reset();
    Result<ReadReply> result = status.is_ok() ? reply() : Result<ReadReply>(status);
    if (!result.is_ok()) request_.destination.reset();
    port_.count(result.status(), result.is_ok() ? result->length : 0, started_);
    parts_.clear();
    port_.finish(std::move(pass_), std::move(request_.done), std::move(result));
  }

  Port& port_;
  HttpCaller& caller_;
  ReadRequest request_;
  const TimePoint deadline_;
  const TimePoint started_;
  std::optional<exec::Gate::Pass> pass_;
  Dialect& dialect_;
  std::vector<ByteRange> ranges_;
  std::vector<std::shared_ptr<RangedRead>> parts_;
  std::stop_source stop_source_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;

  Mutex mutex_;
  std::size_t open_ HR_GUARDED_BY(mutex_) = 0;
  std::size_t started_parts_ HR_GUARDED_BY(mutex_) = 0;
  Status error_ HR_GUARDED_BY(mutex_);
};

}  // namespace

RemoteStore::RemoteStore(const StoreDeps& deps, const StoreOptions& options,
                         std::unique_ptr<HttpTransport> transport, std::unique_ptr<Dialect> dialect)
    : request_timeout_(options.request_timeout),
      port_(deps),
      dialect_(std::move(dialect)),
      transport_(std::move(transport)),
      caller_(port_, *transport_, {.attempts = options.attempts}, deps.jitter_seed, deps.log) {}

RemoteStore::~RemoteStore() { RemoteStore::close(); }

TimePoint RemoteStore::deadline_of(TimePoint wanted) const {
  return wanted == kForever ? port_.now() + request_timeout_ : wanted;
}

std::string RemoteStore::describe(std::string_view key) const { return dialect_->describe(key); }

void RemoteStore::submit(ReadRequest request) {
  Status bad = check_read(request);
  auto pass = port_.enter();
  if (!pass.is_ok()) bad = pass.status();
  if (!bad.is_ok()) {
    request.destination.reset();
    auto held = pass.is_ok() ? std::optional(std::move(pass).value()) : std::nullopt;
    port_.finish(std::move(held), std::move(request.done), Result<ReadReply>(bad));
    return;
  }
  const TimePoint deadline = deadline_of(request.deadline);
  auto op = std::make_shared<ReadOp>(port_, caller_, *dialect_, std::move(request), deadline,
                                     std::move(pass).value());
  op->begin();
}

Result<std::optional<Peeked>> RemoteStore::peek(const ObjectRef& object) {
  HR_TRY(check_key(object.key));
  return std::optional<Peeked>();
}

void RemoteStore::head(HeadRequest request) {
  Status bad = check_key(request.key);
  auto pass = port_.enter();
  if (!pass.is_ok()) bad = pass.status();
  auto held = pass.is_ok()
                  ? std::make_shared<std::optional<exec::Gate::Pass>>(std::move(pass).value())
                  : std::make_shared<std::optional<exec::Gate::Pass>>();
  if (!bad.is_ok()) {
    port_.finish(std::move(*held), std::move(request.done), Result<ObjectInfo>(bad));
    return;
  }
  auto read = std::make_shared<RangedRead>(*dialect_, ObjectRef{.key = request.key},
                                           ByteRange{0, 0}, true, MutableBytes());
  HttpCall call;
  call.deadline = deadline_of(request.deadline);
  call.stop = request.stop;
  read->equip(call);
  call.done = [this, read, held, started = port_.now(),
               done = std::move(request.done)](const Status& status) mutable {
    port_.count(status, 0, started);
    port_.finish(std::move(*held), std::move(done),
                 status.is_ok() ? Result<ObjectInfo>(read->info()) : Result<ObjectInfo>(status));
  };
  caller_.start(std::move(call));
}

void RemoteStore::close() {
  if (port_.is_foreign()) return;
  caller_.stop_all();
  port_.close();
  transport_->close();
}

TransportOptions transport_options(const StoreOptions& options, const StoreDeps& deps) {
  TransportOptions out;
  out.connections = options.connections;
  out.stall_timeout = options.stall_timeout;
  out.connect_timeout = std::min(out.connect_timeout, options.stall_timeout);
  out.ca_bundle = options.ca_bundle.value_or("");
  out.env = deps.env;
  return out;
}

}  // namespace headrace::store
