#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "headrace/exec/bounded_queue.h"
#include "headrace/exec/executor.h"
#include "headrace/exec/gate.h"

namespace headrace::exec {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Task, HoldsMoveOnlyStateAndFreesItAfterRunning) {
  auto token = std::make_shared<int>(5);
  std::weak_ptr<int> watch = token;
  int seen = 0;
  Task task([moved = std::make_unique<std::shared_ptr<int>>(std::move(token)), &seen] {
    seen = **moved;
  });
  EXPECT_FALSE(watch.expired());
  task();
  EXPECT_EQ(seen, 5);
  EXPECT_TRUE(watch.expired());
  EXPECT_FALSE(task);
}

TEST(ThreadExecutor, RunsEveryTaskOnce) {
  auto executor = make_thread_executor(3);
  Mutex mutex;
  CondVar done;
  int ran = 0;
  for (int i = 0; i < 1000; ++i) {
    executor->post([&] {
      MutexLock lock(mutex);
      if (++ran == 1000) done.notify_all();
    });
  }
  {
    MutexLock lock(mutex);
    while (ran != 1000) executor->wait(mutex, done, kForever);
  }
  executor->shutdown();
  EXPECT_EQ(ran, 1000);
  EXPECT_EQ(executor->width(), 3U);
}

TEST(ThreadExecutor, TimersRunAfterTheirTimeAndInOrder) {
  auto executor = make_thread_executor(1);
  BoundedQueue<int> order(*executor, 4);
  const TimePoint start = executor->clock().now();
  executor->post_at(start + milliseconds(20), [&] { (void)order.push(2); });
  executor->post_at(start + milliseconds(5), [&] { (void)order.push(1); });
  EXPECT_EQ(*order.pop(), 1);
  EXPECT_EQ(*order.pop(), 2);
  EXPECT_GE(executor->clock().now() - start, milliseconds(20));
}

TEST(ThreadExecutor, ShutdownDropsWhatIsQueuedAndIsIdempotent) {
  auto executor = make_thread_executor(1);
  auto state = std::make_shared<int>(0);
  std::weak_ptr<int> watch = state;
  executor->post_at(executor->clock().now() + seconds(3600), [state] {});
  state.reset();
  EXPECT_FALSE(watch.expired());
  executor->shutdown();
  EXPECT_TRUE(watch.expired());
  executor->shutdown();
  executor->post([] { FAIL() << "ran after shutdown"; });
}

TEST(VirtualExecutor, TimeMovesOnlyWhenNothingIsReady) {
  VirtualExecutor executor;
  std::string log;
  const TimePoint start = executor.clock().now();
  executor.post_at(start + seconds(10), [&] { log += 'c'; });
  executor.post_at(start + seconds(5), [&] {
    log += 'b';
    executor.post([&] { log += 'B'; });
  });
  executor.post([&] { log += 'a'; });
  EXPECT_EQ(executor.run_ready(), 1U);
  EXPECT_EQ(executor.clock().now(), start);
  EXPECT_EQ(executor.run_until_idle(), 3U);
  EXPECT_EQ(log, "abBc");
  EXPECT_EQ(executor.clock().now() - start, seconds(10));
}

TEST(VirtualExecutor, WaitingRunsOtherTasksAndSeesADeadEnd) {
  VirtualExecutor executor;
  BoundedQueue<int> queue(executor, 1);
  executor.post_at(executor.clock().now() + seconds(1), [&] { (void)queue.push(7); });
  EXPECT_EQ(*queue.pop(), 7);
  EXPECT_EQ(queue.pop(executor.clock().now() + seconds(2)).status().code(), Code::kDeadline);
  EXPECT_EQ(queue.pop().status().code(), Code::kInternal);
}

TEST(BoundedQueue, HoldsNoMoreThanItsCapacity) {
  VirtualExecutor executor;
  BoundedQueue<std::unique_ptr<int>> queue(executor, 2);
  EXPECT_TRUE(queue.push(std::make_unique<int>(1)).is_ok());
  EXPECT_TRUE(queue.push(std::make_unique<int>(2)).is_ok());
  const Status full =
      queue.push(std::make_unique<int>(3), executor.clock().now() + milliseconds(1));
  EXPECT_EQ(full.code(), Code::kDeadline);
  EXPECT_EQ(queue.size(), 2U);
}

TEST(BoundedQueue, CloseHandsOutTheRestAndThenCancels) {
  VirtualExecutor executor;
  BoundedQueue<int> queue(executor, 2);
  EXPECT_TRUE(queue.push(1).is_ok());
  queue.close();
  EXPECT_EQ(queue.push(2).code(), Code::kCancelled);
  EXPECT_EQ(*queue.pop(), 1);
  EXPECT_EQ(queue.pop().status().code(), Code::kCancelled);
}

TEST(BoundedQueue, PassesEverythingBetweenThreads) {
  auto executor = make_thread_executor(1);
  BoundedQueue<int> queue(*executor, 3);
  std::vector<std::thread> producers;
  for (int p = 0; p < 3; ++p) {
    producers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) EXPECT_TRUE(queue.push(1).is_ok());
    });
  }
  int sum = 0;
  for (int i = 0; i < 1500; ++i) sum += *queue.pop();
  for (auto& producer : producers) producer.join();
  EXPECT_EQ(sum, 1500);
}

TEST(Gate, CloseWaitsForPassesAndRefusesNewOnes) {
  auto executor = make_thread_executor(1);
  Gate gate(*executor);
  std::atomic<bool> left = false;
  executor->post([&, pass = std::make_shared<Gate::Pass>(std::move(*gate.enter()))]() mutable {
    std::this_thread::sleep_for(milliseconds(10));
    left = true;
    pass.reset();
  });
  EXPECT_TRUE(gate.close());
  EXPECT_TRUE(left);
  EXPECT_TRUE(gate.is_closed());
  EXPECT_FALSE(gate.enter().has_value());
}

TEST(Gate, CloseGivesUpAtTheDeadline) {
  VirtualExecutor executor;
  Gate gate(executor);
  const auto pass = gate.enter();
  EXPECT_FALSE(gate.close(executor.clock().now() + seconds(1)));
  EXPECT_FALSE(gate.close());
}

}  // namespace
}  // namespace headrace::exec
