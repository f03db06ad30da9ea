// LogSink: where the library's events go. The core itself never writes to stdout or stderr.
// Thread-safety: a sink is called from any thread and must not block for long.
// Ownership: whoever passes a sink keeps it alive; text is borrowed for the call.
#pragma once

#include <functional>
#include <string_view>

namespace headrace::obs {

enum class Level { kDebug, kInfo, kWarning, kError };

// `event` is a short stable name ("store.retry"), `text` what a person reads. An empty function
// drops everything.
using LogSink = std::function<void(Level level, std::string_view event, std::string_view text)>;

inline void log(const LogSink& sink, Level level, std::string_view event, std::string_view text) {
  if (sink) sink(level, event, text);
}

}  // namespace headrace::obs
