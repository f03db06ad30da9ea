#include "headrace/store/blocking.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/store/port.h"

namespace headrace::store {
namespace {

// The first request of a read of unknown size: most indexes end within it.
constexpr std::uint64_t kFirstBytes = 1 << 20;
// The longest range of an object of unknown size for which memory is taken: a length that comes
// from a lying index must not.
constexpr std::uint64_t kBlindBytesMax = 1ULL << 30;

// Answers of requests that are under way; shared with their completions, so that a waiter may
// leave early.
template <typename T>
struct Answers {
  explicit Answers(std::size_t count) : slots(count) {}
  Mutex mutex;
  CondVar arrived;
  std::vector<std::optional<T>> slots HR_GUARDED_BY(mutex);
  std::size_t open HR_GUARDED_BY(mutex) = 0;

  void expect() HR_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    ++open;
  }
  void set(std::size_t i, T value) HR_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    slots[i].emplace(std::move(value));
    --open;
    arrived.notify_all();
  }
  // False when nothing will ever answer; every request carries a deadline, so that is the case
  // only once the executor was shut down.
  bool wait(exec::Executor& executor, TimePoint until) HR_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    while (open > 0) {
      if (executor.clock().now() >= until) return false;
      if (!executor.wait(mutex, arrived, until)) return false;
    }
    return true;
  }
  T take(std::size_t i, Status otherwise) HR_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    if (!slots[i]) return T(std::move(otherwise));
    return std::move(*slots[i]);
  }
};

struct Times {
  explicit Times(const Blocking& how) : deadline(how.executor.clock().now() + how.timeout) {}
  TimePoint deadline;
  // The store answers by the deadline; what comes later than this never comes.
  TimePoint patience() const { return deadline + std::chrono::seconds(5); }
};

Status no_answer(const std::string& object) {
  return deadline_exceeded(object + ": no answer within the time allowed");
}

template <typename T, typename Start>
Result<T> run_one(const Blocking& how, const std::string& object, Start start) {
  const Times times(how);
  auto answers = std::make_shared<Answers<Result<T>>>(1);
  answers->expect();
  start(times.deadline, [answers](Result<T> result) { answers->set(0, std::move(result)); });
  answers->wait(how.executor, times.patience());
  return answers->take(0, no_answer(object));
}

WholeObject to_whole(const ReadReply& reply) {
  WholeObject whole;
  whole.bytes.assign(as_text(reply.memory.bytes().first(reply.length)));
  whole.info = reply.info;
  return whole;
}

ReadRequest range_request(ObjectRef object, ByteRange range, bool may_be_short, TimePoint deadline,
                          ReadDone done) {
  ReadRequest request;
  request.object = std::move(object);
  request.ranges = {range};
  request.may_be_short = may_be_short;
  request.deadline = deadline;
  request.destination = heap_lease(range.length);
  request.done = std::move(done);
  return request;
}

}  // namespace

std::vector<Result<WholeObject>> read_whole_many(ByteSource& source, const Blocking& how,
                                                 const std::vector<std::string>& keys,
                                                 std::uint64_t bytes_max) {
  const Times times(how);
  using Reply = Result<ReadReply>;
  auto first = std::make_shared<Answers<Reply>>(keys.size());
  const ByteRange start{0, std::clamp<std::uint64_t>(bytes_max, 1, kFirstBytes)};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    first->expect();
    source.submit(range_request({.key = keys[i]}, start, true, times.deadline,
                                [first, i](Reply r) { first->set(i, std::move(r)); }));
  }
  first->wait(how.executor, times.patience());

  std::vector<Result<WholeObject>> out;
  auto rest = std::make_shared<Answers<Reply>>(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string name = source.describe(keys[i]);
    Reply reply = first->take(i, no_answer(name));
    if (!reply.is_ok()) {
      out.emplace_back(reply.status());
      continue;
    }
    const ObjectInfo info = reply->info;
    if (info.size > bytes_max) {
      out.emplace_back(exhausted(name + " has " + std::to_string(info.size) +
                                 " bytes, more than the " + std::to_string(bytes_max) +
                                 " that are allowed here"));
      continue;
    }
    out.emplace_back(to_whole(*reply));
    if (info.size <= reply->length) continue;
    rest->expect();
    source.submit(range_request({.key = keys[i], .pin = info.pin, .size = info.size},
                                {reply->length, info.size - reply->length}, false, times.deadline,
                                [rest, i](Reply r) { rest->set(i, std::move(r)); }));
  }
  rest->wait(how.executor, times.patience());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!out[i].is_ok() || out[i]->bytes.size() == out[i]->info.size) continue;
    Reply reply = rest->take(i, no_answer(source.describe(keys[i])));
    if (reply.is_ok()) {
      out[i]->bytes.append(as_text(reply->memory.bytes().first(reply->length)));
    } else {
      out[i] = reply.status();
    }
  }
  return out;
}

Result<WholeObject> read_whole(ByteSource& source, const Blocking& how, std::string_view key,
                               std::uint64_t bytes_max) {
  auto results = read_whole_many(source, how, {std::string(key)}, bytes_max);
  return std::move(results.front());
}

Result<std::string> read_range(ByteSource& source, const Blocking& how, const ObjectRef& object,
                               ByteRange range) {
  const std::uint64_t bytes_max = object.size.value_or(kBlindBytesMax);
  if (range.length > bytes_max) {
    return corrupt(source.describe(object.key) + ": " + describe_range(range) + " are more than " +
                   (object.size ? "the object has (" : "are read blindly (") +
                   std::to_string(bytes_max) + ")");
  }
  HR_ASSIGN(
      const ReadReply reply,
      run_one<ReadReply>(how, source.describe(object.key), [&](TimePoint deadline, ReadDone done) {
        source.submit(range_request(object, range, false, deadline, std::move(done)));
      }));
  return std::string(as_text(reply.memory.bytes().first(reply.length)));
}

Result<ObjectInfo> head(ObjectStore& store, const Blocking& how, std::string_view key) {
  return run_one<ObjectInfo>(how, store.describe(key), [&](TimePoint deadline, HeadDone done) {
    store.head({.key = std::string(key), .deadline = deadline, .done = std::move(done)});
  });
}

Result<ObjectInfo> put(ObjectStore& store, const Blocking& how, std::string_view key,
                       std::string body, bool only_if_absent) {
  auto shared = std::make_shared<const std::string>(std::move(body));
  return run_one<ObjectInfo>(how, store.describe(key), [&](TimePoint deadline, PutDone done) {
    store.put({.key = std::string(key),
               .body = shared,
               .only_if_absent = only_if_absent,
               .deadline = deadline,
               .done = std::move(done)});
  });
}

Status remove(ObjectStore& store, const Blocking& how, std::string_view key) {
  const auto result = run_one<bool>(how, store.describe(key), [&](TimePoint deadline, auto done) {
    store.remove({.key = std::string(key),
                  .deadline = deadline,
                  .done = [done = std::move(done)](Status status) {
                    done(status.is_ok() ? Result<bool>(true) : Result<bool>(std::move(status)));
                  }});
  });
  return result.status();
}

}  // namespace headrace::store
