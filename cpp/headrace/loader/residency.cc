#include "headrace/loader/residency.h"

#include "headrace/base/check.h"

namespace headrace::loader {

std::optional<ByteView> Range::view(ByteRange wanted) const {
  std::uint64_t at = 0;
  for (const ByteRange& extent : extents) {
    if (wanted.offset >= extent.offset && wanted.end() <= extent.end()) {
      return ByteView(memory.bytes()).subspan(at + wanted.offset - extent.offset, wanted.length);
    }
    at += extent.length;
  }
  return std::nullopt;
}

std::shared_ptr<Range> Residency::use(const RangeKey& key) {
  const auto found = ranges_.find(key);
  if (found == ranges_.end()) return nullptr;
  const std::shared_ptr<Range>& range = found->second;
  if (range->is_idle) {
    idle_.erase(range->idle_place);
    range->is_idle = false;
  }
  ++range->users;
  return range;
}

bool Residency::make_room(std::uint64_t bytes, std::vector<std::shared_ptr<Range>>& dropped) {
  if (bytes > bytes_max_) return false;
  while (bytes_ > bytes_max_ - bytes) {
    if (!drop_one(dropped)) return false;
  }
  return true;
}

bool Residency::drop_one(std::vector<std::shared_ptr<Range>>& dropped) {
  if (idle_.empty()) return false;
  dropped.push_back(idle_.front());
  forget(idle_.front());
  return true;
}

void Residency::add(std::shared_ptr<Range> range) {
  HR_CHECK(range->bytes <= bytes_max_ - bytes_, "a range was added without room for it");
  bytes_ += range->bytes;
  range->users = 1;
  const RangeKey key = range->key;
  HR_CHECK(ranges_.emplace(key, std::move(range)).second, "a range was added twice");
}

void Residency::release(const std::shared_ptr<Range>& range) {
  HR_CHECK(range->users > 0, "a range was released more often than used");
  if (--range->users > 0) return;
  if (!range->failure.is_ok()) {
    forget(range);
    return;
  }
  range->idle_place = idle_.insert(idle_.end(), range);
  range->is_idle = true;
}

void Residency::forget(const std::shared_ptr<Range>& range) {
  // `range` may be the very pointer that erasing destroys.
  const std::shared_ptr<Range> keep = range;  // NOLINT(performance-unnecessary-copy-*)
  if (keep->is_idle) {
    idle_.erase(keep->idle_place);
    keep->is_idle = false;
  }
  bytes_ -= keep->bytes;
  ranges_.erase(keep->key);
}

}  // namespace headrace::loader
