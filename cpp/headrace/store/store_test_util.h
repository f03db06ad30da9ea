// What the tests of remote stores share: an executor, metrics, and stores opened with options.
// Thread-safety: one test at a time.
// Ownership: a Bench owns what it opened.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headrace/base/rng.h"
#include "headrace/obs/metrics.h"
#include "headrace/store/blocking.h"
#include "headrace/store/open_store.h"

namespace headrace::store {

inline std::string pattern(std::size_t size, std::uint64_t seed = 1) {
  Rng rng(seed);
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(rng.next());
  return out;
}

struct Bench {
  std::unique_ptr<exec::Executor> executor = exec::make_thread_executor(2);
  obs::Metrics metrics;
  std::map<std::string, std::string> env;
  std::unique_ptr<ObjectStore> store;

  StoreDeps deps() {
    return {*executor,
            metrics,
            {},
            [this](std::string_view name) -> std::optional<std::string> {
              const auto found = env.find(std::string(name));
              if (found == env.end()) return std::nullopt;
              return found->second;
            },
            7};
  }
  // Opens, and fails the test when that fails.
  void open(const std::string& url, const StoreOptions& options = {}) {
    auto opened = open_store(url, options, deps());
    ASSERT_TRUE(opened.is_ok()) << opened.status().to_string();
    store = std::move(opened).value();
  }
  Blocking how(Duration timeout = std::chrono::seconds(30)) { return {*executor, timeout}; }
  Result<std::string> read(const std::string& key, ByteRange range,
                           Duration timeout = std::chrono::seconds(30)) {
    return read_range(*store, how(timeout), {.key = key}, range);
  }
  std::uint64_t retries() { return metrics.counters()["headrace_store_retries_total"]; }
};

// Fails unless `status` has that code and its message says all of `parts`.
inline void expect_error(const Status& status, Code code, const std::vector<std::string>& parts) {
  EXPECT_EQ(status.code(), code) << status.to_string();
  for (const std::string& part : parts) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << "'" << part << "' is not in: " << status.to_string();
  }
}

}  // namespace headrace::store
