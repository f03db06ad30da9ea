// BoundedQueue: hands values from stage to stage with a stated maximum, deadline, and closing.
// Thread-safety: any number of producers and consumers.
// Ownership: owns the values inside; the executor it waits on must outlive it.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/base/status.h"
#include "headrace/exec/executor.h"

namespace headrace::exec {

template <typename T>
class BoundedQueue {
 public:
  BoundedQueue(Executor& executor, std::size_t capacity)
      : executor_(executor), capacity_(capacity) {
    HR_CHECK(capacity > 0, "a queue of capacity 0 passes nothing on");
  }

  // Waits for room. Cancelled once closed, Deadline when there was no room in time.
  Status push(T value, TimePoint deadline = kForever) HR_EXCLUDES(mutex_) {
    // Everyone is notified under the lock: whoever takes the value may free the queue at once.
    MutexLock lock(mutex_);
    while (!closed_ && items_.size() >= capacity_) HR_TRY(wait(has_room_, deadline));
    if (closed_) return cancelled("the queue is closed");
    items_.push_back(std::move(value));
    has_item_.notify_one();
    return Status::ok();
  }

  // Takes the oldest value. What was queued before close() is still handed out.
  Result<T> pop(TimePoint deadline = kForever) HR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (items_.empty()) {
      if (closed_) return cancelled("the queue is closed");
      HR_TRY(wait(has_item_, deadline));
    }
    T value = std::move(items_.front());
    items_.pop_front();
    has_room_.notify_one();
    return value;
  }

  // Refuses further values and wakes everyone. Idempotent.
  void close() HR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    closed_ = true;
    has_item_.notify_all();
    has_room_.notify_all();
  }

  std::size_t size() const HR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return items_.size();
  }
  std::size_t capacity() const { return capacity_; }

 private:
  Status wait(CondVar& cond, TimePoint deadline) HR_REQUIRES(mutex_) {
    if (executor_.clock().now() >= deadline) {
      return deadline_exceeded("waited for a queue past the deadline");
    }
    if (!executor_.wait(mutex_, cond, deadline)) {
      return internal_error("waits for a queue that nothing will ever serve");
    }
    return Status::ok();
  }

  Executor& executor_;
  const std::size_t capacity_;
  mutable Mutex mutex_;
  CondVar has_item_;
  CondVar has_room_;
  std::deque<T> items_ HR_GUARDED_BY(mutex_);
  bool closed_ HR_GUARDED_BY(mutex_) = false;
};

}  // namespace headrace::exec
