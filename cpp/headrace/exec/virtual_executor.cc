#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "headrace/exec/executor.h"

namespace headrace::exec {

struct VirtualExecutor::Impl {
  ManualClock clock;
  std::deque<Task> ready;
  // Ordered by time, then by posting: the same program gives the same interleaving.
  std::map<std::pair<TimePoint, std::uint64_t>, Task> timers;
  std::uint64_t next_timer = 0;
  bool stopping = false;
};

VirtualExecutor::VirtualExecutor() : impl_(std::make_unique<Impl>()) {}
VirtualExecutor::~VirtualExecutor() = default;

const Clock& VirtualExecutor::clock() const { return impl_->clock; }

void VirtualExecutor::post(Task task) {
  if (!impl_->stopping) impl_->ready.push_back(std::move(task));
}

void VirtualExecutor::post_at(TimePoint when, Task task) {
  if (impl_->stopping) return;
  impl_->timers.emplace(std::pair{when, impl_->next_timer++}, std::move(task));
}

bool VirtualExecutor::run_one(TimePoint limit) {
  if (impl_->ready.empty()) {
    if (impl_->timers.empty() || impl_->timers.begin()->first.first > limit) return false;
    auto first = impl_->timers.extract(impl_->timers.begin());
    if (first.key().first > impl_->clock.now()) impl_->clock.set(first.key().first);
    impl_->ready.push_back(std::move(first.mapped()));
  }
  Task task = std::move(impl_->ready.front());
  impl_->ready.pop_front();
  task();
  return true;
}

bool VirtualExecutor::wait(Mutex& mutex, CondVar&, TimePoint deadline)
    HR_NO_THREAD_SAFETY_ANALYSIS {
  if (impl_->clock.now() >= deadline) return true;
  mutex.unlock();
  const bool ran = run_one(deadline);
  if (!ran && deadline != kForever) impl_->clock.set(deadline);
  mutex.lock();
  return ran || deadline != kForever;
}

void VirtualExecutor::shutdown() {
  impl_->stopping = true;
  auto ready = std::exchange(impl_->ready, {});
  auto timers = std::exchange(impl_->timers, {});
}

std::size_t VirtualExecutor::run_ready() {
  std::size_t ran = 0;
  while (run_one(impl_->clock.now())) ++ran;
  return ran;
}

std::size_t VirtualExecutor::run_until_idle() {
  std::size_t ran = 0;
  while (run_one(kForever)) ++ran;
  return ran;
}

}  // namespace headrace::exec
