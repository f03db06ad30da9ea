// Lease: memory that was granted before a request is sent, and goes back where it came from.
// Thread-safety: a value of one thread at a time; the release function is called from whichever
// thread drops it.
// Ownership: move-only; the destructor returns the memory to its lender.
#pragma once

#include <memory>
#include <utility>

#include "headrace/base/bytes.h"

namespace headrace {

class Lease {
 public:
  using Release = void (*)(void* lender, MutableBytes memory);

  Lease() = default;
  Lease(MutableBytes memory, Release release, void* lender)
      : memory_(memory), release_(release), lender_(lender) {}
  Lease(Lease&& other) noexcept
      : memory_(std::exchange(other.memory_, {})),
        release_(std::exchange(other.release_, nullptr)),
        lender_(std::exchange(other.lender_, nullptr)) {}
  Lease& operator=(Lease&& other) noexcept {
    if (this != &other) {
      reset();
      memory_ = std::exchange(other.memory_, {});
      release_ = std::exchange(other.release_, nullptr);
      lender_ = std::exchange(other.lender_, nullptr);
    }
    return *this;
  }
  ~Lease() { reset(); }

  MutableBytes bytes() const { return memory_; }
  std::size_t size() const { return memory_.size(); }
  explicit operator bool() const { return memory_.data() != nullptr; }
  void reset() {
    if (release_) release_(lender_, memory_);
    memory_ = {};
    release_ = nullptr;
  }

 private:
  MutableBytes memory_;
  Release release_ = nullptr;
  void* lender_ = nullptr;
};

// A lease of plain heap memory, for small things and for tests; it counts against no budget.
inline Lease heap_lease(std::size_t size) {
  auto* memory = new std::byte[size];
  return Lease({memory, size}, [](void*, MutableBytes m) { delete[] m.data(); }, nullptr);
}

}  // namespace headrace
