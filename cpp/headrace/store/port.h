// Port: what every store keeps about the requests made to it: gate, process stamp, metrics; and the
// checks that are the same everywhere.
// Thread-safety: any thread.
// Ownership: executor and metrics outlive it; a Pass must not outlive the Port it came from.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/exec/executor.h"
#include "headrace/exec/gate.h"
#include "headrace/obs/metrics.h"
#include "headrace/store/byte_source.h"
#include "headrace/store/open_store.h"

namespace headrace::store {

class Port {
 public:
  explicit Port(const StoreDeps& deps);

  // A pass for one request; Cancelled once closed, InvalidArgument in a forked child.
  Result<exec::Gate::Pass> enter();
  // True in a child that was forked after the store was made: no thread of the store lives there.
  bool is_foreign() const;
  // Refuses new requests and waits until every pass is back. Idempotent.
  void close();

  // Calls `done` on the executor; the pass goes back after it. In a forked child, where no executor
  // runs, `done` is called at once.
  template <typename Done, typename T>
  void finish(std::optional<exec::Gate::Pass> pass, Done done, T result) {
    if (!done) return;
    if (is_foreign()) {
      done(std::move(result));
      return;
    }
    executor_.post(Completion<Done, T>{std::move(pass), std::move(done), std::move(result)});
  }

  exec::Executor& executor() { return executor_; }
  TimePoint now() const { return executor_.clock().now(); }

  // Records one finished request.
  void count(const Status& status, std::uint64_t bytes, TimePoint started);
  void count_retry() { retries_.add(); }

 private:
  template <typename Done, typename T>
  struct Completion {
    void operator()() { done(std::move(result)); }
    // Members are destroyed from the last to the first: the pass goes back after everything else.
    std::optional<exec::Gate::Pass> pass;
    Done done;
    T result;
  };

  exec::Executor& executor_;
  exec::Gate gate_;
  const pid_t pid_;
  obs::Counter& requests_;
  obs::Counter& bytes_;
  obs::Counter& retries_;
  obs::Counter& errors_;
  obs::Histogram& latency_;  // nanoseconds from submit to completion
};

// The key is one, the ranges do not overflow, and the destination holds them.
Status check_read(const ReadRequest& request);
// The sum of the lengths; check_read has shown that it does not overflow.
std::uint64_t total_length(const std::vector<ByteRange>& ranges);
// What is really to be read from an object of `size` bytes: the ranges, the last one cut at the end
// when `may_be_short`. Corrupt when they do not lie inside the object.
Result<std::vector<ByteRange>> clip_ranges(const std::vector<ByteRange>& ranges, std::uint64_t size,
                                           bool may_be_short, std::string_view object);
// Neighbours that touch become one range; the order is kept.
std::vector<ByteRange> merge_adjacent(const std::vector<ByteRange>& ranges);
// "bytes 4096-8191 of 10000", or without a size "bytes 4096-8191".
std::string describe_range(const ByteRange& range, std::optional<std::uint64_t> size = {});

}  // namespace headrace::store
