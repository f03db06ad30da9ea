#include "headrace/store/port.h"

#include <unistd.h>

#include <algorithm>

namespace headrace::store {

Port::Port(const StoreDeps& deps)
    : executor_(deps.executor),
      gate_(deps.executor),
      pid_(getpid()),
      requests_(deps.metrics.counter("headrace_store_requests_total")),
      bytes_(deps.metrics.counter("headrace_store_bytes_total")),
      retries_(deps.metrics.counter("headrace_store_retries_total")),
      errors_(deps.metrics.counter("headrace_store_errors_total")),
      latency_(deps.metrics.histogram("headrace_store_request_nanoseconds")) {}

bool Port::is_foreign() const { return getpid() != pid_; }

Result<exec::Gate::Pass> Port::enter() {
  if (is_foreign()) {
    return invalid_argument("this store was opened in process " + std::to_string(pid_) +
                            " and cannot be used in its forked child " + std::to_string(getpid()) +
                            "; open it again in the child, or start workers with 'spawn'");
  }
  auto pass = gate_.enter();
  if (!pass) return cancelled("the store is closed");
  return std::move(*pass);
}

void Port::close() {
  // The passes of a forked child belong to threads that do not exist there.
  if (!is_foreign()) (void)gate_.close();
}

void Port::count(const Status& status, std::uint64_t bytes, TimePoint started) {
  requests_.add();
  bytes_.add(bytes);
  if (!status.is_ok()) errors_.add();
  const auto took = (now() - started).count();
  latency_.record(took > 0 ? static_cast<std::uint64_t>(took) : 0);
}

Status check_read(const ReadRequest& request) {
  HR_TRY(check_key(request.object.key));
  std::uint64_t total = 0;
  for (const ByteRange& range : request.ranges) {
    const auto end = checked_add(range.offset, range.length);
    const auto sum = checked_add(total, range.length);
    if (!end || !sum) {
      return invalid_argument("object '" + request.object.key + "': a range of " +
                              std::to_string(range.length) + " bytes at offset " +
                              std::to_string(range.offset) + " leaves 64 bits");
    }
    total = *sum;
  }
  if (total > request.destination.size()) {
    return invalid_argument("object '" + request.object.key + "': " + std::to_string(total) +
                            " bytes were asked for with room for " +
                            std::to_string(request.destination.size()));
  }
  return Status::ok();
}

std::uint64_t total_length(const std::vector<ByteRange>& ranges) {
  std::uint64_t total = 0;
  for (const ByteRange& range : ranges) total += range.length;
  return total;
}

Result<std::vector<ByteRange>> clip_ranges(const std::vector<ByteRange>& ranges, std::uint64_t size,
                                           bool may_be_short, std::string_view object) {
  std::vector<ByteRange> out = ranges;
  for (std::size_t i = 0; i < out.size(); ++i) {
    ByteRange& range = out[i];
    if (range.end() <= size) continue;
    if (!may_be_short || i + 1 != out.size()) {
      return corrupt(std::string(object) + ": " + describe_range(range) + " lie outside of the " +
                     std::to_string(size) +
                     " bytes it has; the object is truncated, or its index is of another version");
    }
    range.offset = std::min(range.offset, size);
    range.length = size - range.offset;
  }
  return out;
}

std::vector<ByteRange> merge_adjacent(const std::vector<ByteRange>& ranges) {
  std::vector<ByteRange> out;
  for (const ByteRange& range : ranges) {
    if (range.length == 0) continue;
    if (!out.empty() && out.back().end() == range.offset) {
      out.back().length += range.length;
    } else {
      out.push_back(range);
    }
  }
  return out;
}

std::string describe_range(const ByteRange& range, std::optional<std::uint64_t> size) {
  std::string out = "bytes " + std::to_string(range.offset) + "-" +
                    std::to_string(range.length == 0 ? range.offset : range.end() - 1);
  if (size) out += " of " + std::to_string(*size);
  return out;
}

}  // namespace headrace::store
