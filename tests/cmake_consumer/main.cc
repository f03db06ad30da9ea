// Ends with 0 when the installed headers and archives work together.
#include <chrono>
#include <cstdio>

#include "headrace/base/version.h"
#include "headrace/exec/bounded_queue.h"
#include "headrace/exec/executor.h"

int main() {
  headrace::exec::VirtualExecutor executor;
  headrace::exec::BoundedQueue<int> queue(executor, 1);
  executor.post_at(headrace::TimePoint(std::chrono::hours(1)), [&queue] {
    // There is room, and nobody closed the queue.
    if (!queue.push(42).is_ok()) queue.close();
  });
  const headrace::Result<int> got = queue.pop();
  if (!got.is_ok() || got.value() != 42) return 1;
  std::printf("headrace %s works\n", HEADRACE_VERSION);
  return 0;
}
