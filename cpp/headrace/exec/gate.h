// Gate: lets an object close: refuse new work, wait for the old, then free (after Seastar's gate).
// Thread-safety: any thread.
// Ownership: a Pass keeps the gate's owner from finishing close(); it must not outlive the gate.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/exec/executor.h"

namespace headrace::exec {

class Gate {
 public:
  explicit Gate(Executor& executor) : executor_(executor) {}

  class Pass {
   public:
    explicit Pass(Gate& gate) : gate_(&gate) {}
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (gate_) gate_->leave();
    }

   private:
    Gate* gate_;
  };

  // A pass while open; nullopt once closing has begun.
  std::optional<Pass> enter() HR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (closed_) return std::nullopt;
    ++inside_;
    return std::optional<Pass>(std::in_place, *this);
  }

  // Refuses new passes, then waits until every pass is gone or the deadline is reached. True when
  // all are gone. Idempotent.
  bool close(TimePoint deadline = kForever) HR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    closed_ = true;
    while (inside_ > 0) {
      if (executor_.clock().now() >= deadline) return false;
      if (!executor_.wait(mutex_, empty_, deadline)) return false;
    }
    return true;
  }

  bool is_closed() const HR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return closed_;
  }

 private:
  // Notifies under the lock: close() may free the gate as soon as it sees zero.
  void leave() HR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (--inside_ == 0) empty_.notify_all();
  }

  Executor& executor_;
  mutable Mutex mutex_;
  CondVar empty_;
  std::size_t inside_ HR_GUARDED_BY(mutex_) = 0;
  bool closed_ HR_GUARDED_BY(mutex_) = false;
};

}  // namespace headrace::exec
