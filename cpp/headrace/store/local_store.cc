#include "headrace/store/local_store.h"

#include <atomic>
#include <deque>
#include <map>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/store/local_file.h"
#include "headrace/store/port.h"

namespace headrace::store {
namespace {

// Kept mappings; beyond it the oldest goes. Linux allows 65530 per process by default, and another
// user of this library may hold as many.
constexpr std::size_t kMappingsMax = 4096;

Status changed(const std::string& path, const std::string& was, const std::string& is) {
  return corrupt(path + ": the file changed since it was first read (size-mtime-inode was " + was +
                 ", is " + is + "); open the data set again");
}

}  // namespace

struct LocalStore::State {
  State(const StoreDeps& deps, std::string r) : port(deps), root(std::move(r)) {}

  std::string path_of(std::string_view key) const {
    return root.ends_with('/') ? root + std::string(key) : root + "/" + std::string(key);
  }

  // Runs `work` on the executor unless the request is late or stopped by then.
  template <typename T, typename Work, typename Done>
  void run(TimePoint deadline, std::stop_token stop, Work work, Done done) {
    auto pass = port.enter();
    if (!pass.is_ok()) {
      port.finish<Done, T>(std::nullopt, std::move(done), T(pass.status()));
      return;
    }
    // Only this object is freed after the pass is back, so `this` is good inside the task.
    port.executor().post([this, deadline, stop = std::move(stop), work = std::move(work),
                          done = std::move(done), pass = std::move(pass).value()]() mutable {
      const Status status = admit(deadline, stop);
      done(status.is_ok() ? work() : T(status));
      done = nullptr;  // what the caller captured goes before the pass does
    });
  }

  Status admit(TimePoint deadline, const std::stop_token& stop) {
    if (closing.load()) return cancelled("the store was closed");
    if (stop.stop_requested()) return cancelled("the request was stopped");
    if (port.now() >= deadline) return deadline_exceeded("the deadline passed before the read");
    return Status::ok();
  }

  Result<ReadReply> read(ReadRequest& request) {
    const std::string path = path_of(request.object.key);
    HR_ASSIGN(const File file, open_for_reading(path));
    HR_ASSIGN(ObjectInfo info, stat_file(file, path));
    const std::string& pin = request.object.pin;
    if (!pin.empty() && pin != info.pin) return changed(path, pin, info.pin);
    HR_ASSIGN(const auto ranges,
              clip_ranges(request.ranges, info.size, request.may_be_short, path));
    ReadReply reply;
    for (const ByteRange& range : merge_adjacent(ranges)) {
      HR_TRY(read_fully(file, range.offset,
                        request.destination.bytes().subspan(reply.length, range.length), path));
      reply.length += range.length;
    }
    reply.memory = std::move(request.destination);
    reply.info = std::move(info);
    return reply;
  }

  std::shared_ptr<const Mapping> cached(const std::string& key) HR_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    auto found = mappings.find(key);
    return found == mappings.end() ? nullptr : found->second;
  }

  void remember(const std::string& key, std::shared_ptr<const Mapping> mapping) HR_EXCLUDES(mutex) {
    std::shared_ptr<const Mapping> dropped;  // freed outside of the lock
    MutexLock lock(mutex);
    auto [place, added] = mappings.try_emplace(key, mapping);
    if (!added) {
      dropped = std::exchange(place->second, std::move(mapping));
      return;
    }
    age.push_back(key);
    if (age.size() > kMappingsMax) {
      auto oldest = mappings.extract(age.front());
      dropped = std::move(oldest.mapped());
      age.pop_front();
    }
  }

  Port port;
  const std::string root;
  std::atomic<bool> closing{false};
  Mutex mutex;
  std::map<std::string, std::shared_ptr<const Mapping>> mappings HR_GUARDED_BY(mutex);
  std::deque<std::string> age HR_GUARDED_BY(mutex);  // keys of `mappings`, oldest first
};

LocalStore::LocalStore(const StoreDeps& deps, std::string root)
    : state_(std::make_shared<State>(deps, std::move(root))) {}

LocalStore::~LocalStore() { close(); }

std::string LocalStore::describe(std::string_view key) const { return state_->path_of(key); }

void LocalStore::submit(ReadRequest request) {
  // Shared: a request that comes after close() is answered when the store may be gone.
  std::shared_ptr<State> state = state_;
  const TimePoint started = state->port.now();
  auto shared = std::make_shared<ReadRequest>(std::move(request));
  const Status bad = check_read(*shared);
  state->run<Result<ReadReply>>(
      shared->deadline, shared->stop,
      [state, shared, bad]() -> Result<ReadReply> {
        HR_TRY(bad);
        return state->read(*shared);
      },
      ReadDone([state, shared, started](Result<ReadReply> result) {
        if (!result.is_ok()) shared->destination.reset();
        state->port.count(result.status(), result.is_ok() ? result->length : 0, started);
        shared->done(std::move(result));
      }));
}

Result<std::optional<Peeked>> LocalStore::peek(const ObjectRef& object) {
  HR_TRY(check_key(object.key));
  const std::string path = state_->path_of(object.key);
  std::shared_ptr<const Mapping> mapping = state_->cached(object.key);
  if (mapping) {
    HR_ASSIGN(const ObjectInfo now, stat_path(path));
    if (now.pin != mapping->info().pin) mapping = nullptr;
  }
  if (!mapping) {
    HR_ASSIGN(mapping, map_file(path));
    state_->remember(object.key, mapping);
  }
  if (!object.pin.empty() && object.pin != mapping->info().pin) {
    return changed(path, object.pin, mapping->info().pin);
  }
  return std::optional<Peeked>({mapping->bytes(), mapping});
}

void LocalStore::head(HeadRequest request) {
  State* state = state_.get();
  state->run<Result<ObjectInfo>>(
      request.deadline, request.stop,
      [state, key = request.key]() -> Result<ObjectInfo> {
        HR_TRY(check_key(key));
        return stat_path(state->path_of(key));
      },
      std::move(request.done));
}

void LocalStore::put(PutRequest request) {
  State* state = state_.get();
  state->run<Result<ObjectInfo>>(
      request.deadline, request.stop,
      [state, key = request.key, body = request.body,
       only_if_absent = request.only_if_absent]() -> Result<ObjectInfo> {
        HR_TRY(check_key(key));
        if (!body) return invalid_argument("a put of '" + key + "' needs a body");
        return replace_file(state->path_of(key), *body, only_if_absent);
      },
      std::move(request.done));
}

void LocalStore::remove(RemoveRequest request) {
  State* state = state_.get();
  state->run<Status>(
      request.deadline, {},
      [state, key = request.key]() -> Status {
        HR_TRY(check_key(key));
        return remove_file(state->path_of(key));
      },
      std::move(request.done));
}

void LocalStore::close() {
  state_->closing = true;
  state_->port.close();
}

}  // namespace headrace::store
