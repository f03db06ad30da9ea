#include "headrace/loader/shard_scan.h"

namespace headrace::loader {

Status ShardScan::begin(const store::ObjectInfo& info) {
  bytes_.store(info.size, std::memory_order_relaxed);
  pin_ = info.pin;
  return Status::ok();
}

Status ShardScan::take(ByteView part) {
  hash_.update(part);
  HR_TRY(scanner_.feed(part, found_));
  keep();
  return Status::ok();
}

Status ShardScan::end() {
  HR_TRY(scanner_.finish(found_));
  keep();
  digest_ = hash_.finish();
  return Status::ok();
}

void ShardScan::keep() {
  for (const format::TarSample& sample : found_) {
    fields_.add(sample);
    extents_.push_back({sample.begin, sample.end - sample.begin});
  }
  found_.clear();
}

Status ShardScan::add_to(trust::IndexBuilder& index, bool with_pin) const {
  trust::IndexShard shard;
  shard.name = key_;
  if (with_pin) shard.pin = pin_;
  shard.bytes = bytes();
  shard.sha256 = digest_;
  return index.add_shard(shard, extents_);
}

}  // namespace headrace::loader
