#include "headrace/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace headrace::base {

void check_failed(const char* file, int line, const char* condition, std::string_view message) {
  std::fprintf(stderr, "headrace: %s:%d: broken invariant: %s: %.*s\n", file, line, condition,
               static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace headrace::base
