// Mutex, lock and condition variable that clang's thread-safety analysis understands.
// Thread-safety: that is what they are for. Never hold one across I/O, a callback or Python.
// Ownership: neither copyable nor movable.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "headrace/base/clock.h"

#if defined(__clang__)
#define HR_ANNOTATE_(x) __attribute__((x))
#else
#define HR_ANNOTATE_(x)
#endif
#define HR_CAPABILITY(x) HR_ANNOTATE_(capability(x))
#define HR_SCOPED_CAPABILITY HR_ANNOTATE_(scoped_lockable)
#define HR_GUARDED_BY(x) HR_ANNOTATE_(guarded_by(x))
#define HR_PT_GUARDED_BY(x) HR_ANNOTATE_(pt_guarded_by(x))
#define HR_REQUIRES(...) HR_ANNOTATE_(requires_capability(__VA_ARGS__))
#define HR_EXCLUDES(...) HR_ANNOTATE_(locks_excluded(__VA_ARGS__))
#define HR_ACQUIRE(...) HR_ANNOTATE_(acquire_capability(__VA_ARGS__))
#define HR_RELEASE(...) HR_ANNOTATE_(release_capability(__VA_ARGS__))
#define HR_NO_THREAD_SAFETY_ANALYSIS HR_ANNOTATE_(no_thread_safety_analysis)

namespace headrace {

class CondVar;

class HR_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() HR_ACQUIRE() { mutex_.lock(); }
  void unlock() HR_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class HR_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HR_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() HR_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits may wake without cause: always wait in a loop over the guarded condition.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void wait(Mutex& mutex) HR_REQUIRES(mutex) HR_NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    cond_.wait(lock);
    lock.release();
  }
  // Returns once notified, or when `steady_clock()` has reached `deadline`.
  void wait_until(Mutex& mutex, TimePoint deadline) HR_REQUIRES(mutex)
      HR_NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    if (deadline == kForever) {
      cond_.wait(lock);
    } else {
      cond_.wait_until(lock, deadline);
    }
    lock.release();
  }
  void notify_one() { cond_.notify_one(); }
  void notify_all() { cond_.notify_all(); }

 private:
  std::condition_variable cond_;
};

}  // namespace headrace
