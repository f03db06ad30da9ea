// Scans one tar shard for the index: where its samples lie, which fields they have, its SHA-256.
// Thread-safety: one thread at a time, as ObjectVisitor says.
// Ownership: owns what it found.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "headrace/base/sha256.h"
#include "headrace/format/tar_scanner.h"
#include "headrace/loader/object_stream.h"
#include "headrace/trust/index.h"

namespace headrace::loader {

class ShardScan final : public ObjectVisitor {
 public:
  // `label` is what messages call the shard, `key` its name in the index.
  ShardScan(std::string key, std::string label)
      : key_(std::move(key)), scanner_(std::move(label)) {}

  Status begin(const store::ObjectInfo& info) override;
  Status take(ByteView part) override;
  Status end() override;

  // 0 until begin(); may be asked from any thread.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  // After end(): adds the shard to an index and its fields to a schema.
  Status add_to(trust::IndexBuilder& index, bool with_pin) const;
  const format::WdsSchemaBuilder& fields() const { return fields_; }
  std::uint64_t samples() const { return extents_.size(); }

 private:
  void keep();

  const std::string key_;
  std::atomic<std::uint64_t> bytes_{0};
  std::string pin_;
  format::TarScanner scanner_;
  Sha256 hash_;
  Sha256Digest digest_{};
  std::vector<format::TarSample> found_;  // of one part, reused
  std::vector<ByteRange> extents_;
  format::WdsSchemaBuilder fields_;
};

}  // namespace headrace::loader
