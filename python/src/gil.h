// gil: letting go of the GIL around work of the core, and the thread that must not be waited for.
// Thread-safety: each object belongs to the thread that made it; the functions are for any thread.
// Ownership: values.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace headrace::python {

// How long a signal such as Ctrl-C waits at most for a blocked call.
inline constexpr auto kSignalInterval = std::chrono::milliseconds(100);

// Gives the GIL away for the life of the object, as nanobind's gil_scoped_release does. Where the
// interpreter has begun to end meanwhile, a thread other than the one that ends it sleeps for ever
// instead of taking the GIL back: Python would end such a thread by unwinding its stack, which C++
// answers with std::terminate.
class GilRelease {
 public:
  GilRelease();
  ~GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

// From now on only the calling thread takes the GIL back; returns when no other is waiting for it.
// Call it with the GIL held.
void end_gil_waits();

// Whether the calling thread is the one that runs Python's signal handlers.
bool handles_signals();

// Does `work` without the GIL and gives its result. A signal such as Ctrl-C does not wait for it
// but leaves it to end on a thread of its own, so `work` must own all that it uses. Call it with
// the GIL held.
template <typename Work>
std::invoke_result_t<Work&> run_interruptibly(Work work) {
  using Made = std::invoke_result_t<Work&>;
  if (!handles_signals()) {
    const GilRelease release;
    return work();
  }
  struct Shared {
    explicit Shared(Work given) : work(std::move(given)) {}
    Work work;
    std::mutex mutex;
    std::condition_variable is_done;
    std::optional<Made> made;
    std::exception_ptr thrown;  // out of memory
  };
  auto shared = std::make_shared<Shared>(std::move(work));
  std::thread([shared] {
    std::optional<Made> made;
    std::exception_ptr thrown;
    try {
      made.emplace(shared->work());
    } catch (const std::exception&) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(shared->mutex);
    shared->made = std::move(made);
    shared->thrown = std::move(thrown);
    shared->is_done.notify_one();
  }).detach();
  for (;;) {
    bool is_done = false;
    {
      const GilRelease release;
      std::unique_lock lock(shared->mutex);
      is_done = shared->is_done.wait_for(
          lock, kSignalInterval, [&] { return shared->made.has_value() || shared->thrown; });
    }
    if (is_done && shared->thrown) std::rethrow_exception(shared->thrown);
    if (is_done) return std::move(*shared->made);
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  }
}

}  // namespace headrace::python
