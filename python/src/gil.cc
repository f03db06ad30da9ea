#include "gil.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace headrace::python {
namespace {

// Threads between wanting the GIL back and having it.
std::atomic<int> g_waiting{0};
// The default id means that the interpreter is not ending.
std::atomic<std::thread::id> g_ending_thread{};

constexpr auto kPoll = std::chrono::milliseconds(1);
// A thread that waits longer than this is stopped for another reason, and exit must not hang.
constexpr int kPollsMax = 2000;

bool is_too_late() {
  const std::thread::id ending = g_ending_thread.load();
  return ending != std::thread::id() && ending != std::this_thread::get_id();
}

}  // namespace

GilRelease::GilRelease() : state_(PyEval_SaveThread()) {}

GilRelease::~GilRelease() {
  // Counted before looking, so that end_gil_waits() either sees this thread or is seen by it.
  g_waiting.fetch_add(1);
  if (is_too_late()) {
    g_waiting.fetch_sub(1);
    for (;;) pause();
  }
  PyEval_RestoreThread(state_);
  g_waiting.fetch_sub(1);
}

void end_gil_waits() {
  g_ending_thread = std::this_thread::get_id();
  PyThreadState* const state = PyEval_SaveThread();
  for (int i = 0; i < kPollsMax && g_waiting.load() > 0; ++i) std::this_thread::sleep_for(kPoll);
  PyEval_RestoreThread(state);
}

// On Linux the first thread of a process has the process's number, also after a fork.
bool handles_signals() { return gettid() == getpid(); }

}  // namespace headrace::python
