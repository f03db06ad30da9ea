// Internal to the run order: the shape of a run, and the drawn layout of its lanes in one epoch.
// Thread-safety: immutable after construction.
// Ownership: an EpochLayout borrows its RunShape, which must outlive it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/order/keys.h"
#include "headrace/order/lookup.h"
#include "headrace/order/order_spec.h"
#include "headrace/order/permutation.h"

namespace headrace::order {

// What stays the same in every epoch. Run positions number the samples of the shards laid end to
// end in run order; a lane is a span of them.
struct RunShape {
  RunShape(OrderSpec order_spec, const std::vector<std::uint64_t>& shard_sizes,
           const std::vector<std::vector<std::uint64_t>>& unit_sizes);

  std::uint64_t lane_samples(std::uint64_t lane) const {
    return lane_start[lane + 1] - lane_start[lane];
  }
  // The lane that holds a run position.
  std::uint64_t lane_at(std::uint64_t run_position) const;

  OrderSpec spec;
  KeySpace keys;
  PrefixIndex stored;                     // samples before each shard, in stored order
  std::vector<std::uint32_t> run_shards;  // the shards that have samples, in run order
  PrefixIndex run;                        // samples before each of run_shards
  std::vector<std::uint64_t> run_offset;  // of each shard, in run positions
  PrefixIndex units;                      // samples before each unit, in run order; unit layout
  std::uint64_t samples;
  Divider by_samples;
  Divider by_chunk;
  int lane_bits = 0;  // lanes in use are 2^lane_bits
  std::uint64_t lanes = 1;
  std::uint64_t rounds = 0;  // full rounds of an epoch: every lane once
  std::uint64_t extra = 0;   // lanes that have one sample more
  std::uint64_t block = 1;   // samples of the window that one lane gets
  Divider by_block;
  std::vector<std::uint64_t> lane_start;  // lanes + 1 run positions
};

// The lowest `bits` bits of x in reverse.
std::uint64_t reverse_bits(std::uint64_t x, int bits);

class EpochLayout {
 public:
  EpochLayout(const RunShape& shape, std::uint64_t epoch);

  std::uint64_t epoch() const { return epoch_; }

  // g is a position within the epoch.
  std::uint64_t lane_of(std::uint64_t g) const;
  std::uint64_t run_position(std::uint64_t g) const;
  std::uint64_t position_of(std::uint64_t run_position) const;
  // The run positions of g, g + 1, ...
  void fill(std::uint64_t g, std::span<std::uint64_t> out) const;

  // Run positions [first, first + count) around one of them: its chunk or unit, cut where the lane
  // wraps around. Not cut at shard borders.
  struct Extent {
    std::uint64_t first;
    std::uint64_t count;
  };
  Extent extent_of(std::uint64_t run_position) const;

 private:
  struct Lane {
    Key blocks;                  // keys of the blocks
    std::uint64_t rotation = 0;  // span offset of layout coordinate 0
    std::uint64_t rest_at = 0;   // layout position of the rest, which is no full chunk
    std::uint64_t rest = 0;      // its size
    std::uint64_t whole = 0;     // samples in full chunks
    std::uint64_t first_block = 0;
    std::uint64_t more_blocks = 0;
    Permutation chunks;
    std::uint64_t part_base = 0;  // unit layout: where the lane's parts begin in the tables below
    std::uint64_t parts = 0;
    std::uint64_t unit_base = 0;  // the unit of part 0
  };
  struct Block {
    std::uint64_t index;
    std::uint64_t start;
    std::uint64_t size;
  };

  void draw_lane_order(std::uint64_t epoch);
  void draw_chunks(Lane& lane, std::uint64_t c, Key rotate, Key chunks, Key rest) const;
  void draw_parts(Lane& lane, std::uint64_t c, Key parts);
  void draw_blocks(Lane& lane, std::uint64_t c, Key cut, Key block) const;

  Block block_at(const Lane& lane, std::uint64_t samples, std::uint64_t position) const;
  // Layout position to offset in the span of lane c, and back.
  std::uint64_t offset_of(std::uint64_t c, std::uint64_t layout_position) const;
  std::uint64_t layout_of(std::uint64_t c, std::uint64_t offset) const;
  void offsets_of(std::uint64_t c, std::span<std::uint64_t> layout_positions) const;
  std::uint64_t part_start(std::uint64_t c, std::uint64_t part) const;

  const RunShape& shape_;
  std::uint64_t epoch_;
  std::vector<std::uint32_t> lane_order_;  // slot of a round to lane
  std::vector<std::uint32_t> lane_slot_;   // and back
  std::vector<Lane> lanes_;
  // Unit layout, one entry a part, lane after lane: part at a place of the layout, the place of a
  // part, and the layout position at which a place starts.
  std::vector<std::uint32_t> part_at_;
  std::vector<std::uint32_t> place_of_;
  std::vector<std::uint64_t> place_start_;
};

}  // namespace headrace::order
