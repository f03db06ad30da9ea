// A position of the epoch becomes a sample in four invertible steps:
//   position -> (round, lane)            a scrambled bit reversal of the slot in the round (R6)
//   round -> layout position             a permutation inside the round's block (R5, R8)
//   layout position -> offset in span    permuted chunks and a rotation, or permuted units (R4)
//   span + offset -> (shard, sample)     one prefix sum over shards in run order (R2, R3)
// Everything drawn per lane is drawn once, when the epoch is made; block permutations are made when
// they are needed, since a lane of many blocks would not fit.
#include "headrace/order/epoch_layout.h"

#include <array>
#include <numeric>

#include "headrace/base/check.h"

namespace headrace::order {
namespace {

constexpr std::size_t kFillBlock = 256;

std::vector<std::uint64_t> prefix_sum(const std::vector<std::uint64_t>& sizes) {
  std::vector<std::uint64_t> starts(sizes.size() + 1);
  std::partial_sum(sizes.begin(), sizes.end(), starts.begin() + 1);
  return starts;
}

}  // namespace

std::uint64_t reverse_bits(std::uint64_t x, int bits) {
  std::uint64_t out = 0;
  for (int i = 0; i < bits; ++i) out = out << 1 | (x >> i & 1);
  return out;
}

RunShape::RunShape(OrderSpec order_spec, const std::vector<std::uint64_t>& shard_sizes,
                   const std::vector<std::vector<std::uint64_t>>& unit_sizes)
    : spec(std::move(order_spec)),
      keys(spec.seed, spec.source_name),
      stored(prefix_sum(shard_sizes)),
      run_offset(shard_sizes.size()),
      samples(stored.total()),
      by_samples(samples),
      by_chunk(spec.chunk_samples),
      by_block(1) {
  for (std::uint32_t s = 0; s < shard_sizes.size(); ++s)
    if (shard_sizes[s] != 0) run_shards.push_back(s);
  if (spec.shuffle) fisher_yates(keys.key("run", 0), std::span<std::uint32_t>(run_shards));

  std::vector<std::uint64_t> run_starts = {0};
  std::vector<std::uint64_t> unit_starts = {0};
  for (const std::uint32_t s : run_shards) {
    run_offset[s] = run_starts.back();
    run_starts.push_back(run_starts.back() + shard_sizes[s]);
    if (spec.layout != Layout::kUnit) continue;
    if (unit_sizes.empty()) {
      unit_starts.push_back(run_starts.back());
    } else {
      for (const std::uint64_t size : unit_sizes[s])
        if (size != 0) unit_starts.push_back(unit_starts.back() + size);
    }
  }
  run = PrefixIndex(std::move(run_starts));
  if (spec.layout == Layout::kUnit) units = PrefixIndex(std::move(unit_starts));

  if (spec.shuffle) lane_bits = std::countr_zero(spec.lanes);
  while (lane_bits > 0 && samples >> lane_bits < kLaneSamplesMin) --lane_bits;
  lanes = std::uint64_t{1} << lane_bits;
  rounds = samples >> lane_bits;
  extra = samples & (lanes - 1);
  block = spec.window_samples >> lane_bits;
  by_block = Divider(block);
  lane_start.push_back(0);
  for (std::uint64_t c = 0; c < lanes; ++c)
    lane_start.push_back(lane_start.back() + rounds + (reverse_bits(c, lane_bits) < extra ? 1 : 0));
}

std::uint64_t RunShape::lane_at(std::uint64_t run_position) const {
  return static_cast<std::uint64_t>(
             std::upper_bound(lane_start.begin(), lane_start.end(), run_position) -
             lane_start.begin()) -
         1;
}

EpochLayout::EpochLayout(const RunShape& shape, std::uint64_t epoch)
    : shape_(shape), epoch_(epoch), lanes_(shape.lanes) {
  draw_lane_order(epoch);
  const KeySpace& keys = shape_.keys;
  const Key cut = keys.key("cut", epoch);
  const Key block = keys.key("block", epoch);
  const bool units = shape_.spec.layout == Layout::kUnit;
  const Key parts = keys.key("parts", epoch);
  const Key rotate = keys.key("rotate", epoch);
  const Key chunks = keys.key("chunks", epoch);
  const Key rest = keys.key("rest", epoch);
  for (std::uint64_t c = 0; c < shape_.lanes; ++c) {
    Lane& lane = lanes_[c];
    if (units)
      draw_parts(lane, c, parts);
    else
      draw_chunks(lane, c, rotate, chunks, rest);
    draw_blocks(lane, c, cut, block);
  }
}

void EpochLayout::draw_lane_order(std::uint64_t epoch) {
  const Key key = shape_.keys.key("lanes", epoch);
  lane_order_.resize(shape_.lanes);
  lane_slot_.resize(shape_.lanes);
  for (std::uint64_t slot = 0; slot < shape_.lanes; ++slot) {
    // A walk down a binary tree whose node v flips its branches when its random bit is set.
    std::uint64_t node = 1;
    std::uint64_t lane = 0;
    for (int depth = 0; depth < shape_.lane_bits; ++depth) {
      const std::uint64_t flip = word(key, node / 64) >> (node % 64) & 1;
      const std::uint64_t branch = (slot >> depth & 1) ^ flip;
      lane = 2 * lane + branch;
      node = 2 * node + branch;
    }
    lane_order_[slot] = static_cast<std::uint32_t>(lane);
    lane_slot_[lane] = static_cast<std::uint32_t>(slot);
  }
}

void EpochLayout::draw_chunks(Lane& lane, std::uint64_t c, Key rotate, Key chunks, Key rest) const {
  const std::uint64_t samples = shape_.lane_samples(c);
  const std::uint64_t count = shape_.by_chunk.div(samples);
  lane.rotation = below(sub(rotate, c), 0, samples);
  lane.whole = count * shape_.by_chunk.divisor();
  lane.rest = samples - lane.whole;
  lane.rest_at = below(sub(rest, c), 0, count + 1) * shape_.by_chunk.divisor();
  lane.chunks = Permutation(sub(chunks, c), count);
}

void EpochLayout::draw_parts(Lane& lane, std::uint64_t c, Key parts) {
  lane.unit_base = shape_.units.find(shape_.lane_start[c]);
  lane.parts = shape_.units.find(shape_.lane_start[c + 1] - 1) - lane.unit_base + 1;
  lane.part_base = part_at_.size();
  part_at_.resize(lane.part_base + lane.parts);
  place_of_.resize(part_at_.size());
  const std::span<std::uint32_t> order(part_at_.data() + lane.part_base, lane.parts);
  std::iota(order.begin(), order.end(), 0U);
  fisher_yates(sub(parts, c), order);
  std::uint64_t at = 0;
  for (std::uint32_t place = 0; place < lane.parts; ++place) {
    const std::uint32_t part = order[place];
    place_of_[lane.part_base + part] = place;
    place_start_.push_back(at);
    at += part_start(c, part + 1) - part_start(c, part);
  }
}

void EpochLayout::draw_blocks(Lane& lane, std::uint64_t c, Key cut, Key block) const {
  lane.blocks = sub(block, c);
  const std::uint64_t samples = shape_.lane_samples(c);
  const std::uint64_t size = shape_.block;
  lane.first_block = samples;
  if (samples <= size) return;
  const std::uint64_t low = std::max<std::uint64_t>(1, size / 2);
  const std::uint64_t high = std::min(size + low - 1, samples - low);
  lane.first_block = low + below(sub(cut, c), 0, high - low + 1);
  const std::uint64_t left = samples - lane.first_block;
  lane.more_blocks = std::max<std::uint64_t>(1, shape_.by_block.div(left + size / 2));
}

EpochLayout::Block EpochLayout::block_at(const Lane& lane, std::uint64_t samples,
                                         std::uint64_t position) const {
  if (position < lane.first_block) return {0, 0, lane.first_block};
  const std::uint64_t i =
      std::min(shape_.by_block.div(position - lane.first_block), lane.more_blocks - 1);
  const std::uint64_t start = lane.first_block + i * shape_.block;
  return {i + 1, start, i + 1 == lane.more_blocks ? samples - start : shape_.block};
}

// The first offset of a part in its lane's span; the lane's size for the part after the last.
std::uint64_t EpochLayout::part_start(std::uint64_t c, std::uint64_t part) const {
  const std::uint64_t low = shape_.lane_start[c];
  const std::uint64_t start = shape_.units.start(lanes_[c].unit_base + part);
  return std::clamp(start, low, shape_.lane_start[c + 1]) - low;
}

std::uint64_t EpochLayout::offset_of(std::uint64_t c, std::uint64_t z) const {
  const Lane& lane = lanes_[c];
  if (shape_.spec.layout == Layout::kUnit) {
    const auto begin = place_start_.begin() + static_cast<std::ptrdiff_t>(lane.part_base);
    const auto after = std::upper_bound(begin, begin + static_cast<std::ptrdiff_t>(lane.parts), z);
    const auto place = static_cast<std::uint64_t>(after - begin) - 1;
    const std::uint64_t at = lane.part_base + place;
    return part_start(c, part_at_[at]) + (z - place_start_[at]);
  }
  std::uint64_t y = 0;
  if (z - lane.rest_at < lane.rest) {  // wraps around, so false, below rest_at
    y = lane.whole + (z - lane.rest_at);
  } else {
    const std::uint64_t packed = z < lane.rest_at ? z : z - lane.rest;
    const std::uint64_t slot = shape_.by_chunk.div(packed);
    const std::uint64_t size = shape_.by_chunk.divisor();
    y = lane.chunks.forward(slot) * size + (packed - slot * size);
  }
  const std::uint64_t samples = shape_.lane_samples(c);
  const std::uint64_t turned = y + lane.rotation;
  return turned >= samples ? turned - samples : turned;
}

std::uint64_t EpochLayout::layout_of(std::uint64_t c, std::uint64_t offset) const {
  const Lane& lane = lanes_[c];
  if (shape_.spec.layout == Layout::kUnit) {
    const std::uint64_t part = shape_.units.find(shape_.lane_start[c] + offset) - lane.unit_base;
    const std::uint64_t place = place_of_[lane.part_base + part];
    return place_start_[lane.part_base + place] + (offset - part_start(c, part));
  }
  const std::uint64_t y = offset >= lane.rotation
                              ? offset - lane.rotation
                              : offset + (shape_.lane_samples(c) - lane.rotation);
  if (y >= lane.whole) return lane.rest_at + (y - lane.whole);
  const std::uint64_t chunk = shape_.by_chunk.div(y);
  const std::uint64_t size = shape_.by_chunk.divisor();
  const std::uint64_t packed = lane.chunks.inverse(chunk) * size + (y - chunk * size);
  return packed < lane.rest_at ? packed : packed + lane.rest;
}

// offset_of for many: the chunk permutation runs over all of them at once.
void EpochLayout::offsets_of(std::uint64_t c, std::span<std::uint64_t> values) const {
  const Lane& lane = lanes_[c];
  if (shape_.spec.layout == Layout::kUnit || lane.whole == 0) {
    for (std::uint64_t& value : values) value = offset_of(c, value);
    return;
  }
  const std::uint64_t size = shape_.by_chunk.divisor();
  const std::uint64_t samples = shape_.lane_samples(c);
  std::array<std::uint64_t, kFillBlock> slot;
  std::array<std::uint64_t, kFillBlock> within;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t z = values[i];
    const bool in_rest = z - lane.rest_at < lane.rest;
    const std::uint64_t packed = in_rest ? 0 : z < lane.rest_at ? z : z - lane.rest;
    slot[i] = shape_.by_chunk.div(packed);
    within[i] = packed - slot[i] * size;
  }
  lane.chunks.map({slot.data(), values.size()});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t z = values[i];
    const bool in_rest = z - lane.rest_at < lane.rest;
    const std::uint64_t y = in_rest ? lane.whole + (z - lane.rest_at) : slot[i] * size + within[i];
    const std::uint64_t turned = y + lane.rotation;
    values[i] = turned >= samples ? turned - samples : turned;
  }
}

std::uint64_t EpochLayout::lane_of(std::uint64_t g) const {
  const std::uint64_t slot = g & (shape_.lanes - 1);
  if (g >> shape_.lane_bits < shape_.rounds) return lane_order_[slot];
  return reverse_bits(slot, shape_.lane_bits);
}

std::uint64_t EpochLayout::run_position(std::uint64_t g) const {
  const std::uint64_t round = g >> shape_.lane_bits;
  const std::uint64_t c = lane_of(g);
  const Lane& lane = lanes_[c];
  const Block block = block_at(lane, shape_.lane_samples(c), round);
  const Permutation within(sub(lane.blocks, block.index), block.size);
  const std::uint64_t z = block.start + within.forward(round - block.start);
  return shape_.lane_start[c] + offset_of(c, z);
}

std::uint64_t EpochLayout::position_of(std::uint64_t run_position) const {
  const std::uint64_t c = shape_.lane_at(run_position);
  const Lane& lane = lanes_[c];
  const std::uint64_t z = layout_of(c, run_position - shape_.lane_start[c]);
  const Block block = block_at(lane, shape_.lane_samples(c), z);
  const Permutation within(sub(lane.blocks, block.index), block.size);
  const std::uint64_t round = block.start + within.inverse(z - block.start);
  const std::uint64_t slot =
      round < shape_.rounds ? lane_slot_[c] : reverse_bits(c, shape_.lane_bits);
  return (round << shape_.lane_bits) + slot;
}

void EpochLayout::fill(std::uint64_t g, std::span<std::uint64_t> out) const {
  const std::uint64_t end = g + out.size();
  const std::uint64_t full = std::min(end, shape_.rounds << shape_.lane_bits);
  const std::uint64_t lanes = shape_.lanes;
  std::array<std::uint64_t, kFillBlock> values;
  // Every lane in turn: its positions are `lanes` apart and its rounds follow each other.
  for (std::uint64_t i = 0; i < lanes && g + i < full; ++i) {
    const std::uint64_t c = lane_of(g + i);
    const Lane& lane = lanes_[c];
    std::uint64_t at = g + i;
    while (at < full) {
      const std::uint64_t round = at >> shape_.lane_bits;
      const Block block = block_at(lane, shape_.lane_samples(c), round);
      const Permutation within(sub(lane.blocks, block.index), block.size);
      const std::uint64_t want = (full - at + lanes - 1) >> shape_.lane_bits;
      std::uint64_t left = std::min(want, block.start + block.size - round);
      std::uint64_t from = round - block.start;
      while (left > 0) {
        const std::uint64_t n = std::min<std::uint64_t>(left, kFillBlock);
        const std::span<std::uint64_t> some(values.data(), n);
        within.fill(from, some);
        for (std::uint64_t& value : some) value += block.start;
        offsets_of(c, some);
        for (std::uint64_t j = 0; j < n; ++j)
          out[at - g + j * lanes] = shape_.lane_start[c] + some[j];
        at += n * lanes;
        from += n;
        left -= n;
      }
    }
  }
  for (std::uint64_t at = std::max(g, full); at < end; ++at) out[at - g] = run_position(at);
}

EpochLayout::Extent EpochLayout::extent_of(std::uint64_t run_position) const {
  const std::uint64_t c = shape_.lane_at(run_position);
  const std::uint64_t start = shape_.lane_start[c];
  const std::uint64_t samples = shape_.lane_samples(c);
  const std::uint64_t offset = run_position - start;
  const Lane& lane = lanes_[c];
  if (shape_.spec.layout == Layout::kUnit) {
    const std::uint64_t part = shape_.units.find(run_position) - lane.unit_base;
    const std::uint64_t first = part_start(c, part);
    return {start + first, part_start(c, part + 1) - first};
  }
  const std::uint64_t y =
      offset >= lane.rotation ? offset - lane.rotation : offset + (samples - lane.rotation);
  const std::uint64_t size = shape_.by_chunk.divisor();
  const bool in_rest = y >= lane.whole;
  const std::uint64_t y_first = in_rest ? lane.whole : shape_.by_chunk.div(y) * size;
  const std::uint64_t y_end = y_first + (in_rest ? lane.rest : size);
  // [y_first, y_end) turned by the rotation, on the side of the lane's end where `offset` lies.
  const std::uint64_t wrap = samples - lane.rotation;  // the y that lies at offset 0
  const std::uint64_t low = y >= wrap ? std::max(y_first, wrap) : y_first;
  const std::uint64_t high = y >= wrap ? y_end : std::min(y_end, wrap);
  return {run_position - (y - low), high - low};
}

}  // namespace headrace::order
