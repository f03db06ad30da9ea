#include "headrace/loader/object_stream.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "headrace/base/mutex.h"

namespace headrace::loader {
namespace {

// How often a waiting caller looks at its stop token and reports progress.
constexpr Duration kTick = std::chrono::milliseconds(100);

// An object has one request or one visit under way at any time, and its buffer goes with it:
// request -> completion (visits, then asks for the next part) -> ... -> done, which starts the next
// object. Objects overlap with each other, so network and hashing do too. On failure or stop no new
// request is made; what is under way ends by itself, and the call returns after the last of it.
class Stream {
 public:
  Stream(store::ByteSource& source, exec::Executor& executor,
         const std::vector<store::ObjectRef>& objects, const std::vector<ObjectVisitor*>& visitors,
         const StreamOptions& options)
      : source_(source),
        executor_(executor),
        objects_(objects),
        visitors_(visitors),
        options_(options),
        part_bytes_(std::clamp<std::uint64_t>(options.part_bytes, 4 << 10, 1 << 30)),
        outcomes_(objects.size(), cancelled("the work was stopped before this object was read")) {}

  std::vector<Status> run() HR_EXCLUDES(mutex_) {
    const std::size_t wanted =
        options_.objects_at_once > 0 ? options_.objects_at_once : 2 * executor_.width();
    const std::size_t lanes = std::min(std::max<std::size_t>(wanted, 1), objects_.size());
    {
      MutexLock lock(mutex_);
      active_ = lanes;
    }
    for (std::size_t i = 0; i < lanes; ++i) start_next(heap_lease(part_bytes_));
    wait();
    MutexLock lock(mutex_);
    return outcomes_;
  }

 private:
  struct Position {
    std::size_t object = 0;
    std::uint64_t offset = 0;
    std::string pin;
    std::uint64_t size = 0;
  };

  void wait() HR_EXCLUDES(mutex_) {
    std::uint64_t reported = 0;
    for (;;) {
      std::uint64_t bytes = 0;
      bool is_done = false;
      {
        MutexLock lock(mutex_);
        if (options_.stop.stop_requested()) is_stopping_ = true;
        if (active_ > 0) executor_.wait(mutex_, changed_, executor_.clock().now() + kTick);
        is_done = active_ == 0;
        bytes = bytes_;
      }
      if (options_.progress && bytes != reported) options_.progress(bytes);
      reported = bytes;
      if (is_done) return;
    }
  }

  // Takes up the next object with the buffer of a finished one; without one the lane ends.
  void start_next(Lease buffer) HR_EXCLUDES(mutex_) {
    Position at;
    {
      MutexLock lock(mutex_);
      if (is_stopping_ || next_ == objects_.size()) {
        if (--active_ == 0) changed_.notify_all();
        return;
      }
      at.object = next_++;
    }
    at.pin = objects_[at.object].pin;
    request(std::move(at), std::move(buffer));
  }

  void request(Position at, Lease buffer) {
    const store::ObjectRef& object = objects_[at.object];
    const bool is_first = at.offset == 0;
    store::ReadRequest read;
    read.object.key = object.key;
    read.object.pin = at.pin;
    if (!is_first) read.object.size = at.size;
    read.ranges = {
        {at.offset, is_first ? part_bytes_ : std::min(part_bytes_, at.size - at.offset)}};
    read.may_be_short = is_first;
    read.deadline = executor_.clock().now() + options_.timeout;
    read.priority = store::Priority::kBulk;
    read.stop = options_.stop;
    read.destination = std::move(buffer);
    read.done = [this, at = std::move(at)](Result<store::ReadReply> reply) mutable {
      receive(std::move(at), std::move(reply));
    };
    source_.submit(std::move(read));
  }

  void receive(Position at, Result<store::ReadReply> reply) HR_EXCLUDES(mutex_) {
    if (!reply.is_ok()) {
      finish(at.object, reply.status(), heap_lease(part_bytes_));
      return;
    }
    const Status visited = visit(at, *reply);
    Lease buffer = std::move(reply->memory);
    if (!visited.is_ok() || at.offset == at.size) {
      finish(at.object, visited, std::move(buffer));
      return;
    }
    bool is_stopping = false;
    {
      MutexLock lock(mutex_);
      is_stopping = is_stopping_;
    }
    if (is_stopping) {
      finish(at.object, cancelled("the work was stopped inside this object"), std::move(buffer));
    } else {
      request(std::move(at), std::move(buffer));
    }
  }

  // Hands the part to the visitor and moves `at` behind it.
  Status visit(Position& at, const store::ReadReply& reply) HR_EXCLUDES(mutex_) {
    ObjectVisitor& visitor = *visitors_[at.object];
    if (at.offset == 0) {
      at.size = reply.info.size;
      at.pin = reply.info.pin;
      HR_TRY(visitor.begin(reply.info));
    }
    if (reply.length == 0 && at.offset < at.size) {
      return internal_error(source_.describe(objects_[at.object].key) + ": an empty answer");
    }
    HR_TRY(visitor.take(reply.memory.bytes().first(reply.length)));
    at.offset += reply.length;
    {
      MutexLock lock(mutex_);
      bytes_ += reply.length;
    }
    return at.offset == at.size ? visitor.end() : Status::ok();
  }

  void finish(std::size_t object, const Status& status, Lease buffer) HR_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      outcomes_[object] = status;
      if (!status.is_ok() && options_.stop_at_failure) is_stopping_ = true;
    }
    start_next(std::move(buffer));
  }

  store::ByteSource& source_;
  exec::Executor& executor_;
  const std::vector<store::ObjectRef>& objects_;
  const std::vector<ObjectVisitor*>& visitors_;
  const StreamOptions& options_;
  const std::uint64_t part_bytes_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Status> outcomes_ HR_GUARDED_BY(mutex_);
  std::size_t next_ HR_GUARDED_BY(mutex_) = 0;
  std::size_t active_ HR_GUARDED_BY(mutex_) = 0;
  std::uint64_t bytes_ HR_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ HR_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::vector<Status> stream_objects(store::ByteSource& source, exec::Executor& executor,
                                   const std::vector<store::ObjectRef>& objects,
                                   const std::vector<ObjectVisitor*>& visitors,
                                   const StreamOptions& options) {
  HR_CHECK(objects.size() == visitors.size(), "one visitor for each object");
  if (objects.empty()) return {};
  return Stream(source, executor, objects, visitors, options).run();
}

}  // namespace headrace::loader
