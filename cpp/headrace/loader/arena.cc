#include "headrace/loader/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "headrace/base/check.h"
#include "headrace/base/mutex.h"

namespace headrace::loader {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

// Sizes are rounded up to an eighth of their power of two, so that batches of nearly equal size
// reuse each other's pages: touching fresh pages costs more than filling them.
std::uint64_t size_class(std::uint64_t size) {
  size = std::max(size, kPage);
  const std::uint64_t step = std::max(kPage, std::bit_floor(size) / 8);
  return (size + step - 1) / step * step;
}

std::byte* map_pages(std::uint64_t capacity) {
  void* memory =
      mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (capacity >= kHugePage) madvise(memory, capacity, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

}  // namespace

struct Arena::Pool {
  explicit Pool(std::uint64_t budget_bytes) : budget(budget_bytes) {}
  ~Pool() {
    for (const auto& [capacity, block] : idle) munmap(block, capacity);
  }

  const std::uint64_t budget;
  mutable Mutex mutex;
  // Warm blocks by capacity; what they hold counts against the budget until it is unmapped.
  std::multimap<std::uint64_t, std::byte*> idle HR_GUARDED_BY(mutex);
  std::uint64_t idle_bytes HR_GUARDED_BY(mutex) = 0;
  Usage usage HR_GUARDED_BY(mutex);

  // Held while the callback runs, so that clearing it also waits for a call under way. Taken alone.
  Mutex callback_mutex;
  std::function<void()> on_release HR_GUARDED_BY(callback_mutex);
};

namespace {

// What a lease carries: the way back, and the capacity that its size was rounded up to.
struct Lender {
  std::shared_ptr<void> pool;
  std::uint64_t capacity;
};

}  // namespace

Arena::Arena(std::uint64_t budget_bytes) : pool_(std::make_shared<Pool>(budget_bytes)) {}
Arena::~Arena() { set_on_release({}); }

std::optional<Lease> Arena::try_lease(std::uint64_t size) {
  const std::uint64_t capacity = size_class(size);
  std::byte* block = nullptr;
  std::vector<std::pair<std::uint64_t, std::byte*>> unmapped;
  {
    MutexLock lock(pool_->mutex);
    Usage& usage = pool_->usage;
    if (capacity > pool_->budget || usage.leased > pool_->budget - capacity) return std::nullopt;
    if (const auto warm = pool_->idle.find(capacity); warm != pool_->idle.end()) {
      block = warm->second;
      pool_->idle.erase(warm);
      pool_->idle_bytes -= capacity;
    }
    // Gives up the largest warm blocks until the new one fits into the budget beside the others.
    while (!block && usage.leased + pool_->idle_bytes + capacity > pool_->budget) {
      const auto largest = std::prev(pool_->idle.end());
      unmapped.emplace_back(*largest);
      pool_->idle_bytes -= largest->first;
      pool_->idle.erase(largest);
    }
    usage.leased += capacity;
    usage.leases += 1;
    usage.leased_peak = std::max(usage.leased_peak, usage.leased);
  }
  for (const auto& [bytes, memory] : unmapped) munmap(memory, bytes);
  if (!block) block = map_pages(capacity);
  if (!block) {
    MutexLock lock(pool_->mutex);
    pool_->usage.leased -= capacity;
    pool_->usage.leases -= 1;
    return std::nullopt;
  }
  const auto release = [](void* raw, MutableBytes memory) {
    const std::unique_ptr<Lender> lender(static_cast<Lender*>(raw));
    const auto pool = std::static_pointer_cast<Pool>(lender->pool);
    {
      MutexLock lock(pool->mutex);
      pool->idle.emplace(lender->capacity, memory.data());
      pool->idle_bytes += lender->capacity;
      pool->usage.leased -= lender->capacity;
      pool->usage.leases -= 1;
    }
    MutexLock lock(pool->callback_mutex);
    if (pool->on_release) pool->on_release();
  };
  return Lease({block, size}, release, new Lender{pool_, capacity});
}

Arena::Usage Arena::usage() const {
  MutexLock lock(pool_->mutex);
  Usage out = pool_->usage;
  out.budget = pool_->budget;
  return out;
}

void Arena::set_on_release(std::function<void()> call) {
  MutexLock lock(pool_->callback_mutex);
  pool_->on_release.swap(call);
}

}  // namespace headrace::loader
