// Executor: where every stage runs and waits. Threads and the steady clock in the product; one
// thread and virtual time in tests and simulation, where the same code gives the same results.
// Thread-safety: ThreadExecutor may be used from any thread; VirtualExecutor from one.
// Ownership: an executor outlives everything posted to it; its destructor runs or drops the rest.
#pragma once

#include <cstddef>
#include <memory>

#include "headrace/base/clock.h"
#include "headrace/base/mutex.h"
#include "headrace/exec/task.h"

namespace headrace::exec {

class Executor {
 public:
  virtual ~Executor() = default;

  virtual const Clock& clock() const = 0;
  // Worker threads; 1 in virtual time. Stages size their fan-out by it.
  virtual std::size_t width() const = 0;

  // Runs `task` soon, in posting order as far as there is one thread free. After shutdown the task
  // is destroyed without being run.
  virtual void post(Task task) = 0;
  // Runs `task` once the clock has reached `when`.
  virtual void post_at(TimePoint when, Task task) = 0;

  // Stands in for `cond.wait_until(mutex, deadline)` wherever a stage must block: threads sleep on
  // the condition; in virtual time the caller runs other tasks meanwhile (with `mutex` released),
  // and time moves on when none is left. Wakes without cause, so loop over the condition. False
  // when nothing can ever wake the caller (virtual time, no task and no timer left, no deadline).
  // Never called from a task: a blocked worker could be the one that everybody waits for.
  virtual bool wait(Mutex& mutex, CondVar& cond, TimePoint deadline) HR_REQUIRES(mutex) = 0;

  // Refuses new tasks, drops the queued ones and waits for those that run. Idempotent.
  virtual void shutdown() = 0;
};

// `threads` >= 1 workers plus one timer thread that starts with the first post_at.
std::unique_ptr<Executor> make_thread_executor(std::size_t threads);

// One thread, virtual time. Tasks run only inside wait(), run_ready() and run_until_idle().
class VirtualExecutor final : public Executor {
 public:
  VirtualExecutor();
  ~VirtualExecutor() override;

  const Clock& clock() const override;
  std::size_t width() const override { return 1; }
  void post(Task task) override;
  void post_at(TimePoint when, Task task) override;
  bool wait(Mutex& mutex, CondVar& cond, TimePoint deadline) override HR_REQUIRES(mutex);
  void shutdown() override;

  // Runs what can run without moving time; returns how many tasks ran.
  std::size_t run_ready();
  // Runs tasks and timers, moving time, until neither is left.
  std::size_t run_until_idle();

 private:
  bool run_one(TimePoint limit);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::exec
