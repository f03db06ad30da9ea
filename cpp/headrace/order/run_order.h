// The run order headrace-1 of one source (rules R1 - R8): run position to sample and back.
// Thread-safety: a RunOrder is immutable; all methods may be called from any thread.
// Ownership: a cheap handle; copies share one table of O(shards + lanes) entries.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "headrace/base/status.h"
#include "headrace/order/order_spec.h"

namespace headrace::order {

// Where a sample lies. `ordinal` numbers all samples of the data set in stored order.
struct Placement {
  std::uint32_t shard = 0;
  std::uint64_t sample = 0;   // within the shard
  std::uint64_t ordinal = 0;  // samples of all earlier shards + sample
  friend bool operator==(const Placement&, const Placement&) = default;
};

// Neighbouring samples of one shard that the order keeps together for one epoch.
struct Piece {
  std::uint32_t shard = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
};

class RunOrder {
 public:
  // `shard_sizes` counts samples, in stored order; zeros are allowed, a sum of zero is not.
  // `unit_sizes` has one list a shard, each summing to its shard's size; it is read in the unit
  // layout only, where leaving it empty makes every shard one unit.
  static Result<RunOrder> make(OrderSpec spec, const std::vector<std::uint64_t>& shard_sizes,
                               const std::vector<std::vector<std::uint64_t>>& unit_sizes = {});

  const OrderSpec& spec() const;
  std::uint64_t samples() const;  // of one epoch
  std::uint32_t shards() const;   // empty ones included
  std::uint64_t shard_samples(std::uint32_t shard) const;
  // Unit layout: the size of the unit in which an average sample lies.
  double mean_unit_samples() const;
  // Lanes in use: spec().lanes, halved until a lane has kLaneSamplesMin samples; 1 when not
  // shuffling.
  std::uint32_t lanes() const;

  // The sample at run position t, whose epoch is t div samples().
  Placement sample_at(std::uint64_t t) const;
  // The run position at which `epoch` delivers sample `ordinal`; the result must fit in 64 bits.
  std::uint64_t position_of(std::uint64_t ordinal, std::uint64_t epoch) const;
  // out[j] = sample_at(t + j), many times faster.
  void fill(std::uint64_t t, std::span<Placement> out) const;
  void fill(std::uint64_t t, std::uint64_t n, Placement* out) const { fill(t, {out, n}); }

  // The piece of the chunk (or unit) of sample_at(t) that is contiguous in its shard: a chunk may
  // be cut at shard borders and where the lane's rotation wraps around. All samples of a piece name
  // the same piece for the whole epoch, and the pieces of an epoch tile the data set.
  Piece chunk_at(std::uint64_t t) const;
  // The lane that position t is drawn from, scaled to spec().lanes; 0 when not shuffling.
  std::uint32_t lane_of(std::uint64_t t) const;
  // out[j] = lane_of(t + j).
  void fill_lanes(std::uint64_t t, std::span<std::uint32_t> out) const;

  // Where sample `ordinal` (below samples()) is stored.
  Placement locate(std::uint64_t ordinal) const;

 private:
  struct Impl;
  explicit RunOrder(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace headrace::order
