#include <algorithm>
#include <deque>
#include <queue>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "headrace/exec/executor.h"

namespace headrace::exec {
namespace {

class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(std::size_t threads) : width_(std::max<std::size_t>(1, threads)) {
    workers_.reserve(width_);
    // A limit on processes or memory may allow fewer threads than asked for; one is enough to go on
    // with, and none is the caller's to report.
    try {
      while (workers_.size() < width_) workers_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      if (workers_.empty()) throw;
      width_ = workers_.size();
    }
  }
  ~ThreadExecutor() override { shutdown(); }

  const Clock& clock() const override { return steady_clock(); }
  std::size_t width() const override { return width_; }

  void post(Task task) override HR_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (stopping_) return;
      ready_.push_back(std::move(task));
    }
    has_work_.notify_one();
  }

  void post_at(TimePoint when, Task task) override HR_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (stopping_) return;
      timers_.push_back({when, next_timer_++, std::move(task)});
      std::push_heap(timers_.begin(), timers_.end());
      if (!timer_thread_.joinable()) timer_thread_ = std::thread([this] { run_timers(); });
    }
    timer_changed_.notify_one();
  }

  bool wait(Mutex& mutex, CondVar& cond, TimePoint deadline) override HR_REQUIRES(mutex) {
    cond.wait_until(mutex, deadline);
    return true;
  }

  void shutdown() override HR_EXCLUDES(mutex_) {
    std::deque<Task> dropped;
    std::vector<Timer> dropped_timers;
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      dropped.swap(ready_);
      dropped_timers.swap(timers_);
    }
    has_work_.notify_all();
    timer_changed_.notify_all();
    MutexLock join_lock(join_mutex_);
    for (std::thread& worker : workers_) {
      if (worker.joinable()) worker.join();
    }
    if (timer_thread_.joinable()) timer_thread_.join();
  }

 private:
  struct Timer {
    TimePoint when;
    std::uint64_t order;
    Task task;
    // Makes the standard heap a min-heap by (when, order).
    bool operator<(const Timer& other) const {
      return std::tie(when, order) > std::tie(other.when, other.order);
    }
  };

  void work() HR_EXCLUDES(mutex_) {
    while (true) {
      Task task;
      {
        MutexLock lock(mutex_);
        while (ready_.empty() && !stopping_) has_work_.wait(mutex_);
        if (stopping_) return;
        task = std::move(ready_.front());
        ready_.pop_front();
      }
      task();
    }
  }

  void run_timers() HR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!stopping_) {
      if (timers_.empty()) {
        timer_changed_.wait(mutex_);
        continue;
      }
      if (steady_clock().now() < timers_.front().when) {
        timer_changed_.wait_until(mutex_, timers_.front().when);
        continue;
      }
      std::pop_heap(timers_.begin(), timers_.end());
      ready_.push_back(std::move(timers_.back().task));
      timers_.pop_back();
      has_work_.notify_one();
    }
  }

  std::size_t width_;  // as it is when the constructor ends
  Mutex mutex_;
  Mutex join_mutex_;  // taken after mutex_ was released, never together with it
  CondVar has_work_;
  CondVar timer_changed_;
  std::deque<Task> ready_ HR_GUARDED_BY(mutex_);
  std::vector<Timer> timers_ HR_GUARDED_BY(mutex_);
  std::uint64_t next_timer_ HR_GUARDED_BY(mutex_) = 0;
  bool stopping_ HR_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;
  std::thread timer_thread_;
};

}  // namespace

std::unique_ptr<Executor> make_thread_executor(std::size_t threads) {
  return std::make_unique<ThreadExecutor>(threads);
}

}  // namespace headrace::exec
