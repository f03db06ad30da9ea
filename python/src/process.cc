#include "process.h"

#include <nanobind/stl/string.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <random>

#include "gil.h"

namespace nb = nanobind;

namespace headrace::python {
namespace {

// Events kept between two calls into the package; more are counted and dropped.
constexpr std::size_t kQueuedEventsMax = 1000;

struct Event {
  obs::Level level;
  std::string name;
  std::string text;
};

struct EventQueue {
  std::mutex mutex;
  std::deque<Event> events;
  std::uint64_t dropped = 0;
  std::atomic<bool> has_events{false};
};

// Never destroyed: workers may log while the interpreter ends.
EventQueue& events() {
  static auto* const queue = new EventQueue;
  return *queue;
}

std::atomic<std::uint64_t> g_forks{0};
std::atomic<bool> g_ending{false};

// The queue is the only thing that lives on in a forked child, so its lock is never carried over.
void watch_forks() {
  [[maybe_unused]] static const int once =
      pthread_atfork([] { events().mutex.lock(); }, [] { events().mutex.unlock(); },
                     [] {
                       g_forks.fetch_add(1, std::memory_order_relaxed);
                       events().events.clear();
                       events().has_events = false;
                       events().mutex.unlock();
                     });
}

std::optional<std::string> environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

// As logging has them.
int python_level(obs::Level level) {
  switch (level) {
    case obs::Level::kDebug: return 10;
    case obs::Level::kInfo: return 20;
    case obs::Level::kWarning: return 30;
    case obs::Level::kError: return 40;
  }
  return 40;
}

nb::object text_of(const std::string& text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

nb::list take_log() {
  std::deque<Event> taken;
  std::uint64_t dropped = 0;
  {
    const std::lock_guard lock(events().mutex);
    taken.swap(events().events);
    dropped = std::exchange(events().dropped, 0);
    events().has_events = false;
  }
  nb::list out;
  for (const Event& event : taken) {
    out.append(nb::make_tuple(python_level(event.level), text_of(event.name), text_of(event.text)));
  }
  if (dropped > 0) {
    out.append(
        nb::make_tuple(30, "log.dropped",
                       std::to_string(dropped) + " log events came faster than they were read"));
  }
  return out;
}

}  // namespace

std::uint64_t fork_generation() { return g_forks.load(std::memory_order_relaxed); }

bool interpreter_is_ending() { return g_ending.load(); }

void queue_log(obs::Level level, std::string_view event, std::string_view text) {
  const std::lock_guard lock(events().mutex);
  if (events().events.size() >= kQueuedEventsMax) {
    ++events().dropped;
    return;
  }
  events().events.push_back({level, std::string(event), std::string(text)});
  events().has_events = true;
}

obs::LogSink log_sink() { return queue_log; }

Runtime::Runtime(std::size_t threads) : executor_(exec::make_thread_executor(threads)) {}

Runtime::~Runtime() = default;

store::StoreDeps Runtime::store_deps() {
  // Only retry delays are drawn from the seed, so it need not be reproducible; it must differ
  // between ranks, or all would retry at the same moments.
  std::random_device entropy;
  const std::uint64_t seed = (std::uint64_t{entropy()} << 32) | entropy();
  return {*executor_, metrics_, log_sink(), environment, seed};
}

void bind_process(nb::module_& m) {
  watch_forks();
  m.def(
      "set_ending",
      [] {
        g_ending = true;
        end_gil_waits();
      },
      "Says that the interpreter ends: from now on no worker asks for the GIL.");
  m.def("fork_generation", &fork_generation);
  m.def(
      "log_pending", [] { return events().has_events.load(std::memory_order_relaxed); },
      "Whether take_log() has anything to give.");
  m.def("take_log", &take_log, nb::sig("def take_log() -> list[tuple[int, str, str]]"),
        "Events since the last call, as (level of logging, event, text).");
}

}  // namespace headrace::python
