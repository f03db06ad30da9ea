// Arena: the fixed memory budget of one loader; batches and fetched ranges are leased from it.
// Thread-safety: any thread. Waiters are served in the order in which they asked.
// Ownership: an Arena is a handle to a pool; the pool lives until its last lease is back, so a
// batch may outlive the loader and the interpreter.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "headrace/base/lease.h"

namespace headrace::loader {

class Arena {
 public:
  // `budget_bytes` is the most that is ever leased at one time, plus what is kept warm for reuse.
  explicit Arena(std::uint64_t budget_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Memory of at least `size` bytes, aligned to 4096, or nullopt when the budget is used up now.
  std::optional<Lease> try_lease(std::uint64_t size);

  struct Usage {
    std::uint64_t budget = 0;
    std::uint64_t leased = 0;  // bytes
    std::uint64_t leases = 0;
    std::uint64_t leased_peak = 0;  // bytes
  };
  Usage usage() const;

  // Called, without a lock held, after each lease that came back; replaces the earlier one. Once
  // set_on_release({}) has returned the earlier one is not called any more.
  void set_on_release(std::function<void()> call);

 private:
  struct Pool;
  std::shared_ptr<Pool> pool_;
};

}  // namespace headrace::loader
