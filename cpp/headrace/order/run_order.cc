#include "headrace/order/run_order.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "headrace/base/bytes.h"
#include "headrace/base/check.h"
#include "headrace/base/mutex.h"
#include "headrace/order/epoch_layout.h"

namespace headrace::order {
namespace {

constexpr std::size_t kFillBlock = 4096;  // 32 KiB of stack

std::string number(std::uint64_t n) { return std::to_string(n); }

Status check_shards(const std::vector<std::uint64_t>& shard_sizes) {
  constexpr std::uint64_t kShardsMax = std::numeric_limits<std::uint32_t>::max() - 1;
  if (shard_sizes.size() > kShardsMax)
    return invalid_argument("an order covers at most " + number(kShardsMax) + " shards, not " +
                            number(shard_sizes.size()));
  std::uint64_t total = 0;
  for (std::size_t s = 0; s < shard_sizes.size(); ++s) {
    if (shard_sizes[s] > kSamplesMax - total)
      return invalid_argument("shard " + number(s) + " of " + number(shard_sizes[s]) +
                              " samples brings the data set above " + number(kSamplesMax) +
                              " samples");
    total += shard_sizes[s];
  }
  if (total == 0)
    return invalid_argument("a data set without samples has no order (" +
                            number(shard_sizes.size()) + " shards, all empty)");
  return Status::ok();
}

Status check_units(const std::vector<std::uint64_t>& shard_sizes,
                   const std::vector<std::vector<std::uint64_t>>& unit_sizes) {
  if (unit_sizes.empty()) return Status::ok();
  if (unit_sizes.size() != shard_sizes.size())
    return invalid_argument("unit sizes are given for " + number(unit_sizes.size()) + " of " +
                            number(shard_sizes.size()) + " shards");
  std::uint64_t units = 0;
  for (std::size_t s = 0; s < shard_sizes.size(); ++s) {
    std::uint64_t left = shard_sizes[s];
    for (const std::uint64_t size : unit_sizes[s]) {
      if (size > left)
        return invalid_argument("the units of shard " + number(s) + " hold more than its " +
                                number(shard_sizes[s]) + " samples");
      left -= size;
    }
    if (left != 0)
      return invalid_argument("the units of shard " + number(s) + " hold " + number(left) +
                              " samples fewer than its " + number(shard_sizes[s]));
    units += unit_sizes[s].size();
  }
  if (units >= std::numeric_limits<std::uint32_t>::max())
    return invalid_argument("an order covers fewer than 2^32 units, not " + number(units));
  return Status::ok();
}

}  // namespace

struct RunOrder::Impl {
  Impl(OrderSpec spec, const std::vector<std::uint64_t>& shard_sizes,
       const std::vector<std::vector<std::uint64_t>>& unit_sizes)
      : shape(std::move(spec), shard_sizes, unit_sizes) {}

  // Readers are in one epoch, prefetch in the next and an audit in a third. An epoch is drawn under
  // the lock, so that it is drawn once.
  std::shared_ptr<const EpochLayout> epoch(std::uint64_t e) const {
    const MutexLock lock(mutex);
    for (const auto& drawn : recent)
      if (drawn && drawn->epoch() == e) return drawn;
    auto& slot = recent[next_slot];
    next_slot = (next_slot + 1) % recent.size();
    slot = std::make_shared<const EpochLayout>(shape, e);
    return slot;
  }

  Placement place(std::uint64_t run_position) const {
    const std::uint64_t i = shape.run.find(run_position);
    const std::uint32_t shard = shape.run_shards[i];
    const std::uint64_t sample = run_position - shape.run.start(i);
    return {shard, sample, shape.stored.start(shard) + sample};
  }

  RunShape shape;
  mutable Mutex mutex;
  mutable std::array<std::shared_ptr<const EpochLayout>, 4> recent HR_GUARDED_BY(mutex);
  mutable std::size_t next_slot HR_GUARDED_BY(mutex) = 0;
};

Result<RunOrder> RunOrder::make(OrderSpec spec, const std::vector<std::uint64_t>& shard_sizes,
                                const std::vector<std::vector<std::uint64_t>>& unit_sizes) {
  HR_TRY(spec.validate());
  HR_TRY(check_shards(shard_sizes));
  if (spec.layout == Layout::kUnit) HR_TRY(check_units(shard_sizes, unit_sizes));
  return RunOrder(std::make_shared<const Impl>(std::move(spec), shard_sizes, unit_sizes));
}

const OrderSpec& RunOrder::spec() const { return impl_->shape.spec; }
std::uint64_t RunOrder::samples() const { return impl_->shape.samples; }
std::uint32_t RunOrder::shards() const {
  return static_cast<std::uint32_t>(impl_->shape.stored.intervals());
}
std::uint64_t RunOrder::shard_samples(std::uint32_t shard) const {
  HR_CHECK(shard < shards(), "shard out of range");
  return impl_->shape.stored.size(shard);
}
double RunOrder::mean_unit_samples() const {
  const PrefixIndex& units = impl_->shape.units;
  double squares = 0;
  for (std::uint64_t u = 0; u < units.intervals(); ++u) {
    const auto size = static_cast<double>(units.size(u));
    squares += size * size;
  }
  return squares / static_cast<double>(samples());
}
std::uint32_t RunOrder::lanes() const { return static_cast<std::uint32_t>(impl_->shape.lanes); }

Placement RunOrder::sample_at(std::uint64_t t) const {
  const RunShape& shape = impl_->shape;
  const std::uint64_t e = shape.by_samples.div(t);
  const std::uint64_t g = t - e * shape.samples;
  return impl_->place(shape.spec.shuffle ? impl_->epoch(e)->run_position(g) : g);
}

std::uint64_t RunOrder::position_of(std::uint64_t ordinal, std::uint64_t epoch) const {
  const RunShape& shape = impl_->shape;
  const Placement at = locate(ordinal);
  const std::uint64_t run_position = shape.run_offset[at.shard] + at.sample;
  const std::uint64_t g =
      shape.spec.shuffle ? impl_->epoch(epoch)->position_of(run_position) : run_position;
  const auto first = checked_mul(epoch, shape.samples);
  const auto t = first ? checked_add(*first, g) : std::nullopt;
  HR_CHECK(t.has_value(), "the epoch lies beyond 64-bit positions");
  return *t;
}

void RunOrder::fill(std::uint64_t t, std::span<Placement> out) const {
  const RunShape& shape = impl_->shape;
  std::array<std::uint64_t, kFillBlock> run_positions;
  std::shared_ptr<const EpochLayout> drawn;
  while (!out.empty()) {
    const std::uint64_t e = shape.by_samples.div(t);
    const std::uint64_t g = t - e * shape.samples;
    const std::uint64_t n = std::min<std::uint64_t>({out.size(), kFillBlock, shape.samples - g});
    const std::span<std::uint64_t> some(run_positions.data(), n);
    if (!shape.spec.shuffle) {
      for (std::uint64_t j = 0; j < n; ++j) some[j] = g + j;
    } else {
      if (!drawn || drawn->epoch() != e) drawn = impl_->epoch(e);
      drawn->fill(g, some);
    }
    for (std::uint64_t j = 0; j < n; ++j) out[j] = impl_->place(some[j]);
    out = out.subspan(n);
    t += n;
  }
}

Piece RunOrder::chunk_at(std::uint64_t t) const {
  const RunShape& shape = impl_->shape;
  const std::uint64_t e = shape.by_samples.div(t);
  const std::uint64_t g = t - e * shape.samples;
  std::uint64_t position = g;
  EpochLayout::Extent extent{};
  if (shape.spec.shuffle) {
    const auto drawn = impl_->epoch(e);
    position = drawn->run_position(g);
    extent = drawn->extent_of(position);
  } else if (shape.spec.layout == Layout::kUnit) {
    const std::uint64_t unit = shape.units.find(g);
    extent = {shape.units.start(unit), shape.units.size(unit)};
  } else {
    const std::uint64_t first = shape.by_chunk.div(g) * shape.by_chunk.divisor();
    extent = {first, std::min(shape.by_chunk.divisor(), shape.samples - first)};
  }
  const std::uint64_t i = shape.run.find(position);
  const std::uint64_t start = shape.run.start(i);
  const std::uint64_t low = std::max(extent.first, start);
  const std::uint64_t high = std::min(extent.first + extent.count, start + shape.run.size(i));
  return {shape.run_shards[i], low - start, high - low};
}

std::uint32_t RunOrder::lane_of(std::uint64_t t) const {
  std::uint32_t lane = 0;
  fill_lanes(t, {&lane, 1});
  return lane;
}

void RunOrder::fill_lanes(std::uint64_t t, std::span<std::uint32_t> out) const {
  const RunShape& shape = impl_->shape;
  if (!shape.spec.shuffle) {
    std::fill(out.begin(), out.end(), 0U);
    return;
  }
  const int scale = std::countr_zero(shape.spec.lanes) - shape.lane_bits;
  while (!out.empty()) {
    const std::uint64_t e = shape.by_samples.div(t);
    const std::uint64_t g = t - e * shape.samples;
    const std::uint64_t n = std::min<std::uint64_t>(out.size(), shape.samples - g);
    const auto drawn = impl_->epoch(e);
    for (std::uint64_t j = 0; j < n; ++j)
      out[j] = static_cast<std::uint32_t>(drawn->lane_of(g + j) << scale);
    out = out.subspan(n);
    t += n;
  }
}

Placement RunOrder::locate(std::uint64_t ordinal) const {
  const RunShape& shape = impl_->shape;
  HR_CHECK(ordinal < shape.samples, "sample ordinal out of range");
  const std::uint64_t shard = shape.stored.find(ordinal);
  return {static_cast<std::uint32_t>(shard), ordinal - shape.stored.start(shard), ordinal};
}

}  // namespace headrace::order
