// MemoryStore: objects in memory, with latency, bandwidth and faults on request, so that everything
// above a store can run against it in virtual time.
// Thread-safety: any thread.
// Ownership: owns its objects; bytes that were peeked stay valid after the object is replaced.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/store/object_store.h"
#include "headrace/store/open_store.h"

namespace headrace::store {

// What is to go wrong with one read.
struct MemoryFault {
  Status status{};                         // when not ok, the read fails with it, after its time
  Duration delay{0};                       // comes on top of the latency
  bool never = false;                      // no answer before the deadline, a stop or close()
  std::optional<std::uint64_t> flip_at{};  // this byte of the delivered bytes arrives inverted
};

struct MemoryOptions {
  Duration latency{0};          // from request to first byte
  double bytes_per_second = 0;  // of one wire that all reads share; 0: unlimited
  bool can_peek = true;         // false: looks like a remote store
  // Asked once for each read; `nth` counts the reads of that key from 0. Empty: nothing goes wrong.
  std::function<MemoryFault(std::string_view key, std::uint64_t nth)> fault{};
};

class MemoryStore final : public ObjectStore {
 public:
  explicit MemoryStore(const StoreDeps& deps, MemoryOptions options = {});
  ~MemoryStore() override;

  // Puts or replaces an object at once; its pin changes with every call.
  void set(std::string key, std::string bytes);

  void submit(ReadRequest request) override;
  Result<std::optional<Peeked>> peek(const ObjectRef& object) override;
  std::string describe(std::string_view key) const override;
  void close() override;
  void head(HeadRequest request) override;
  void put(PutRequest request) override;
  void remove(RemoveRequest request) override;

 private:
  struct State;
  // Shared with timers that may fire after the store is gone.
  std::shared_ptr<State> state_;
};

}  // namespace headrace::store
