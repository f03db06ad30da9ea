// HR_CHECK: an invariant of our own; a dead rank is better than a wrong sample, so it aborts.
// Thread-safety: safe from any thread.
// Ownership: nothing.
#pragma once

#include <string_view>

namespace headrace::base {

// Prints the broken invariant with its place to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view message);

}  // namespace headrace::base

// Only for bugs of this code base. Anything reachable from input, network, disk or an argument
// returns a Status instead.
#define HR_CHECK(condition, message)                                             \
  do {                                                                           \
    if (!(condition)) [[unlikely]]                                               \
      ::headrace::base::check_failed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
