// errors: the one place where a Status becomes a Python exception.
// Thread-safety: the caller holds the GIL.
// Ownership: values.
#pragma once

#include <utility>

#include "headrace/base/status.h"

namespace headrace::python {

// Throws the exception that headrace.errors has for the code of `status`, which must not be ok.
[[noreturn]] void raise(const Status& status);

inline void check(const Status& status) {
  if (!status.is_ok()) raise(status);
}

template <typename T>
T check(Result<T> result) {
  if (!result.is_ok()) raise(result.status());
  return std::move(result).value();
}

}  // namespace headrace::python
