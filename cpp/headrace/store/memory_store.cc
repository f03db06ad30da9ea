#include "headrace/store/memory_store.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/store/port.h"

namespace headrace::store {
namespace {

struct Object {
  std::shared_ptr<const std::string> bytes;
  std::string pin;
};

// How one request goes: when it is answered and whether it ever is.
struct Timing {
  Duration service{0};
  bool never = false;
  TimePoint deadline = kForever;
  std::stop_token stop{};
};

std::string name_of(std::string_view key) { return "memory:" + std::string(key); }

}  // namespace

struct MemoryStore::State : std::enable_shared_from_this<State> {
  using Finish = std::function<void(Status, std::optional<exec::Gate::Pass>)>;
  struct Cancel {
    std::weak_ptr<State> state;
    std::uint64_t id;
    void operator()() const {
      if (auto alive = state.lock()) alive->fire_later(id, cancelled("the request was stopped"));
    }
  };
  struct Pending {
    Pending(Finish f, exec::Gate::Pass p) : finish(std::move(f)), pass(std::move(p)) {}
    Finish finish;
    exec::Gate::Pass pass;
    std::optional<std::stop_callback<Cancel>> on_stop;
  };

  State(const StoreDeps& deps, MemoryOptions o) : port(deps), options(std::move(o)) {}

  // Posting never runs a task, so this may be called under the lock.
  void fire_later(std::uint64_t id, Status status) {
    port.executor().post([weak = weak_from_this(), id, status = std::move(status)] {
      if (auto alive = weak.lock()) alive->fire(id, status);
    });
  }

  void fire_at(TimePoint when, std::uint64_t id, Status status) {
    port.executor().post_at(when, [weak = weak_from_this(), id, status = std::move(status)] {
      if (auto alive = weak.lock()) alive->fire(id, status);
    });
  }

  // Ends request `id` unless it has ended already.
  void fire(std::uint64_t id, const Status& status) HR_EXCLUDES(mutex) {
    std::unique_ptr<Pending> ended;
    {
      MutexLock lock(mutex);
      auto found = pending.find(id);
      if (found == pending.end()) return;
      ended = std::move(found->second);
      pending.erase(found);
    }
    ended->finish(status, std::move(ended->pass));
  }

  void start(const Timing& timing, Finish finish) HR_EXCLUDES(mutex) {
    auto pass = port.enter();
    if (!pass.is_ok()) {
      finish(pass.status(), std::nullopt);
      return;
    }
    const TimePoint now = port.now();
    auto entry = std::make_unique<Pending>(std::move(finish), std::move(pass).value());
    std::uint64_t id = 0;
    {
      MutexLock lock(mutex);
      id = next_id++;
      entry->on_stop.emplace(timing.stop, Cancel{weak_from_this(), id});
      pending.emplace(id, std::move(entry));
    }
    const TimePoint when = now + timing.service;
    if (timing.deadline < when || (timing.never && timing.deadline != kForever)) {
      fire_at(timing.deadline, id, deadline_exceeded("no answer before the deadline"));
    } else if (timing.never) {
      return;
    } else if (when <= now) {
      fire_later(id, Status::ok());
    } else {
      fire_at(when, id, Status::ok());
    }
  }

  // Adds one transfer to the shared wire; how long from now until its last byte has arrived.
  Duration transfer(std::uint64_t bytes) HR_EXCLUDES(mutex) {
    if (options.bytes_per_second <= 0) return options.latency;
    const double seconds = static_cast<double>(bytes) / options.bytes_per_second;
    // An hour stands for "for ever"; it keeps the conversion in range.
    const Duration time(static_cast<Duration::rep>(std::ceil(std::min(seconds, 3600.0) * 1e9)));
    const TimePoint first_byte = port.now() + options.latency;
    MutexLock lock(mutex);
    wire_free = std::max(wire_free, first_byte) + time;
    return wire_free - port.now();
  }

  Result<Object> find(const ObjectRef& object) HR_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    auto found = objects.find(object.key);
    if (found == objects.end()) return not_found(name_of(object.key) + ": there is no such object");
    if (!object.pin.empty() && object.pin != found->second.pin) {
      return corrupt(name_of(object.key) + ": the object changed since it was first read (it was " +
                     object.pin + ", it is " + found->second.pin + "); open the data set again");
    }
    return found->second;
  }

  Object store(std::string key, std::shared_ptr<const std::string> bytes) HR_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    Object object{std::move(bytes), "v" + std::to_string(++version)};
    objects[std::move(key)] = object;
    return object;
  }

  MemoryFault fault_of(const std::string& key) HR_EXCLUDES(mutex) {
    if (!options.fault) return {};
    std::uint64_t nth = 0;
    {
      MutexLock lock(mutex);
      nth = reads[key]++;
    }
    return options.fault(key, nth);
  }

  Result<ReadReply> deliver(ReadRequest& request, const std::optional<std::uint64_t>& flip_at) {
    HR_ASSIGN(const Object object, find(request.object));
    const std::string& bytes = *object.bytes;
    HR_ASSIGN(const auto ranges, clip_ranges(request.ranges, bytes.size(), request.may_be_short,
                                             name_of(request.object.key)));
    ReadReply reply;
    std::byte* out = request.destination.bytes().data();
    for (const ByteRange& range : ranges) {
      if (range.length == 0) continue;
      std::memcpy(out + reply.length, bytes.data() + range.offset, range.length);
      reply.length += range.length;
    }
    if (flip_at && *flip_at < reply.length) out[*flip_at] = ~out[*flip_at];
    reply.memory = std::move(request.destination);
    reply.info = {bytes.size(), object.pin};
    return reply;
  }

  Port port;
  const MemoryOptions options;
  Mutex mutex;
  std::map<std::string, Object, std::less<>> objects HR_GUARDED_BY(mutex);
  std::map<std::string, std::uint64_t> reads HR_GUARDED_BY(mutex);
  std::map<std::uint64_t, std::unique_ptr<Pending>> pending HR_GUARDED_BY(mutex);
  std::uint64_t next_id HR_GUARDED_BY(mutex) = 0;
  std::uint64_t version HR_GUARDED_BY(mutex) = 0;
  TimePoint wire_free HR_GUARDED_BY(mutex);
};

MemoryStore::MemoryStore(const StoreDeps& deps, MemoryOptions options)
    : state_(std::make_shared<State>(deps, std::move(options))) {}

MemoryStore::~MemoryStore() { close(); }

void MemoryStore::set(std::string key, std::string bytes) {
  state_->store(std::move(key), std::make_shared<const std::string>(std::move(bytes)));
}

std::string MemoryStore::describe(std::string_view key) const { return name_of(key); }

void MemoryStore::submit(ReadRequest request) {
  const TimePoint started = state_->port.now();
  Status bad = check_read(request);
  const MemoryFault fault = bad.is_ok() ? state_->fault_of(request.object.key) : MemoryFault{};
  Timing timing{.service = Duration(0),
                .never = fault.never,
                .deadline = request.deadline,
                .stop = request.stop};
  if (bad.is_ok()) {
    timing.service = state_->transfer(total_length(request.ranges)) + fault.delay;
    bad = fault.status;
  }
  auto shared = std::make_shared<ReadRequest>(std::move(request));
  state_->start(timing, [state = state_.get(), shared, bad, flip_at = fault.flip_at, started](
                            Status status, std::optional<exec::Gate::Pass> pass) {
    if (status.is_ok()) status = bad;
    Result<ReadReply> result =
        status.is_ok() ? state->deliver(*shared, flip_at) : Result<ReadReply>(std::move(status));
    if (!result.is_ok()) shared->destination.reset();
    state->port.count(result.status(), result.is_ok() ? result->length : 0, started);
    state->port.finish(std::move(pass), std::move(shared->done), std::move(result));
  });
}

Result<std::optional<Peeked>> MemoryStore::peek(const ObjectRef& object) {
  HR_TRY(check_key(object.key));
  if (!state_->options.can_peek) return std::optional<Peeked>();
  HR_ASSIGN(const Object found, state_->find(object));
  return std::optional<Peeked>({as_bytes(*found.bytes), found.bytes});
}

void MemoryStore::head(HeadRequest request) {
  Timing timing{
      .service = state_->options.latency, .deadline = request.deadline, .stop = request.stop};
  auto shared = std::make_shared<HeadRequest>(std::move(request));
  state_->start(
      timing, [state = state_.get(), shared](Status status, std::optional<exec::Gate::Pass> pass) {
        if (status.is_ok()) status = check_key(shared->key);
        Result<ObjectInfo> result(ObjectInfo{});
        if (status.is_ok()) {
          auto found = state->find({.key = shared->key});
          result = found.is_ok() ? Result<ObjectInfo>({found->bytes->size(), found->pin})
                                 : Result<ObjectInfo>(found.status());
        } else {
          result = status;
        }
        state->port.finish(std::move(pass), std::move(shared->done), std::move(result));
      });
}

void MemoryStore::put(PutRequest request) {
  Timing timing{.service = state_->transfer(request.body ? request.body->size() : 0),
                .deadline = request.deadline,
                .stop = request.stop};
  auto shared = std::make_shared<PutRequest>(std::move(request));
  state_->start(
      timing, [state = state_.get(), shared](Status status, std::optional<exec::Gate::Pass> pass) {
        if (status.is_ok()) status = check_key(shared->key);
        if (status.is_ok() && !shared->body) status = invalid_argument("a put needs a body");
        if (status.is_ok() && shared->only_if_absent && state->find({.key = shared->key}).is_ok()) {
          status = invalid_argument(name_of(shared->key) + ": the object exists already");
        }
        Result<ObjectInfo> result(ObjectInfo{});
        if (status.is_ok()) {
          const Object object = state->store(shared->key, shared->body);
          result = ObjectInfo{object.bytes->size(), object.pin};
        } else {
          result = status;
        }
        state->port.finish(std::move(pass), std::move(shared->done), std::move(result));
      });
}

void MemoryStore::remove(RemoveRequest request) {
  Timing timing{.service = state_->options.latency, .deadline = request.deadline};
  auto shared = std::make_shared<RemoveRequest>(std::move(request));
  state_->start(
      timing, [state = state_.get(), shared](Status status, std::optional<exec::Gate::Pass> pass) {
        if (status.is_ok()) status = check_key(shared->key);
        if (status.is_ok()) {
          MutexLock lock(state->mutex);
          state->objects.erase(shared->key);
        }
        state->port.finish(std::move(pass), std::move(shared->done), std::move(status));
      });
}

void MemoryStore::close() {
  if (state_->port.is_foreign()) return;
  std::vector<std::uint64_t> open;
  {
    MutexLock lock(state_->mutex);
    for (const auto& [id, entry] : state_->pending) open.push_back(id);
  }
  for (std::uint64_t id : open) state_->fire_later(id, cancelled("the store was closed"));
  state_->port.close();
}

}  // namespace headrace::store
