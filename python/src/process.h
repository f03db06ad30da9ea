// process: what all objects of this process share: executors, metrics, queued log events, forks.
// Thread-safety: any thread, with or without the GIL, unless a function says otherwise.
// Ownership: a Runtime lives as long as the last object that uses it; queued events live for ever.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "headrace/exec/executor.h"
#include "headrace/obs/log.h"
#include "headrace/obs/metrics.h"
#include "headrace/store/open_store.h"

namespace headrace::python {

// How many times this process was forked off since its first object; what was made under another
// number must not be touched, because its threads are not here and its locks may be held for ever.
std::uint64_t fork_generation();

// Threads and metrics for one data set or one loader.
class Runtime {
 public:
  explicit Runtime(std::size_t threads);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  exec::Executor& executor() { return *executor_; }
  obs::Metrics& metrics() { return metrics_; }
  store::StoreDeps store_deps();

 private:
  obs::Metrics metrics_;
  std::unique_ptr<exec::Executor> executor_;
};

// True once the package has closed everything because the interpreter ends; then no thread may wait
// for the GIL any more, because it would wait for ever.
bool interpreter_is_ending();

// Keeps an event for the next drain_log(); never waits for Python, so workers may call it.
void queue_log(obs::Level level, std::string_view event, std::string_view text);
obs::LogSink log_sink();

// A value together with the threads it works with. In a child process that was forked after it was
// made it is left alone: not used, and not destroyed.
template <typename T>
class Guarded {
 public:
  Guarded(std::shared_ptr<Runtime> runtime, T value)
      : inner_(new Inner{std::move(runtime), std::move(value)}), generation_(fork_generation()) {}
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() {
    if (!is_foreign()) delete inner_;
  }

  bool is_foreign() const { return generation_ != fork_generation(); }
  T& value() { return inner_->value; }
  const std::shared_ptr<Runtime>& runtime() const { return inner_->runtime; }

 private:
  struct Inner {
    std::shared_ptr<Runtime> runtime;  // outlives `value`
    T value;
  };
  Inner* inner_;
  std::uint64_t generation_;
};

void bind_process(nanobind::module_& m);

}  // namespace headrace::python
