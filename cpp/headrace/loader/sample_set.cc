#include "headrace/loader/sample_set.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "headrace/base/rng.h"
#include "headrace/base/sha256.h"

namespace headrace::loader {
namespace {

// bounds[i] is the sum of the first i sizes.
std::vector<std::uint64_t> prefix_sums(const std::vector<std::uint64_t>& sizes) {
  std::vector<std::uint64_t> bounds(sizes.size() + 1, 0);
  std::partial_sum(sizes.begin(), sizes.end(), bounds.begin() + 1);
  return bounds;
}

// The last i with bounds[i] <= value, skipping empty ranges.
std::size_t range_of(const std::vector<std::uint64_t>& bounds, std::uint64_t value) {
  const auto after = std::upper_bound(bounds.begin(), bounds.end(), value);
  return static_cast<std::size_t>(after - bounds.begin()) - 1;
}

}  // namespace

struct SampleSet::Table {
  std::shared_ptr<const std::vector<std::uint64_t>> shard_bounds;
  bool is_all = true;
  std::vector<std::uint64_t> ordinals;  // empty for the whole data set
  std::vector<std::uint64_t> run_sizes;
  std::vector<std::uint64_t> run_bounds;  // empty for the whole data set
  std::vector<std::uint32_t> run_shards;  // empty for the whole data set
};

SampleSet SampleSet::all(std::vector<std::uint64_t> shard_samples) {
  auto table = std::make_shared<Table>();
  table->shard_bounds =
      std::make_shared<const std::vector<std::uint64_t>>(prefix_sums(shard_samples));
  table->run_sizes = std::move(shard_samples);
  return SampleSet(std::move(table));
}

std::uint64_t SampleSet::size() const {
  return table_->is_all ? universe() : table_->ordinals.size();
}
std::uint64_t SampleSet::universe() const { return table_->shard_bounds->back(); }
bool SampleSet::is_all() const { return table_->is_all; }

SampleRef SampleSet::at(std::uint64_t i) const {
  HR_CHECK(i < size(), "sample number past the end of the view");
  const std::uint64_t ordinal = table_->is_all ? i : table_->ordinals[i];
  const std::size_t shard = range_of(*table_->shard_bounds, ordinal);
  return {static_cast<std::uint32_t>(shard), ordinal - (*table_->shard_bounds)[shard], ordinal};
}

SampleRef SampleSet::at(std::uint32_t run, std::uint64_t i) const {
  HR_CHECK(run < table_->run_sizes.size() && i < table_->run_sizes[run],
           "sample number past the end of its run");
  if (table_->is_all) return {run, i, (*table_->shard_bounds)[run] + i};
  const std::uint64_t ordinal = table_->ordinals[table_->run_bounds[run] + i];
  const std::uint32_t shard = table_->run_shards[run];
  return {shard, ordinal - (*table_->shard_bounds)[shard], ordinal};
}

const std::vector<std::uint64_t>& SampleSet::run_sizes() const { return table_->run_sizes; }

SampleSet SampleSet::from_ordinals(std::vector<std::uint64_t> ordinals) const {
  auto table = std::make_shared<Table>();
  table->shard_bounds = table_->shard_bounds;
  table->is_all = false;
  const std::vector<std::uint64_t>& bounds = *table->shard_bounds;
  for (const std::uint64_t ordinal : ordinals) {
    const std::uint32_t last = table->run_shards.empty() ? 0 : table->run_shards.back();
    const bool continues =
        !table->run_shards.empty() && bounds[last] <= ordinal && ordinal < bounds[last + 1];
    if (!continues) {
      table->run_shards.push_back(static_cast<std::uint32_t>(range_of(bounds, ordinal)));
      table->run_sizes.push_back(0);
    }
    ++table->run_sizes.back();
  }
  table->run_bounds = prefix_sums(table->run_sizes);
  table->ordinals = std::move(ordinals);
  return SampleSet(std::move(table));
}

Result<SampleSet> SampleSet::select(std::vector<std::uint64_t> indices) const {
  for (std::uint64_t& index : indices) {
    if (index >= size()) {
      return invalid_argument("select: index " + std::to_string(index) +
                              " is past the end of a view of " + std::to_string(size()) +
                              " samples");
    }
    if (!table_->is_all) index = table_->ordinals[index];
  }
  return from_ordinals(std::move(indices));
}

SampleSet SampleSet::take(std::uint64_t n) const {
  if (n >= size()) return *this;
  std::vector<std::uint64_t> ordinals(n);
  if (table_->is_all) {
    std::iota(ordinals.begin(), ordinals.end(), std::uint64_t{0});
  } else {
    std::copy_n(table_->ordinals.begin(), n, ordinals.begin());
  }
  return from_ordinals(std::move(ordinals));
}

std::pair<SampleSet, SampleSet> SampleSet::split(double fraction, std::uint64_t seed) const {
  HR_CHECK(fraction >= 0 && fraction <= 1, "a fraction lies in [0, 1]");
  // A sample is in the first part when its 53-bit uniform number is below the fraction.
  std::vector<std::uint64_t> first;
  std::vector<std::uint64_t> second;
  const std::uint64_t key = mix64(seed + kGoldenGamma);
  for (std::uint64_t i = 0; i < size(); ++i) {
    const std::uint64_t ordinal = table_->is_all ? i : table_->ordinals[i];
    const std::uint64_t word = mix64((key ^ ordinal) + kGoldenGamma);
    const bool in_first = static_cast<double>(word >> 11) * 0x1p-53 < fraction;
    (in_first ? first : second).push_back(ordinal);
  }
  return {from_ordinals(std::move(first)), from_ordinals(std::move(second))};
}

std::string SampleSet::fingerprint() const {
  if (table_->is_all) return {};
  const auto* raw = reinterpret_cast<const std::byte*>(table_->ordinals.data());
  return to_hex(sha256({raw, table_->ordinals.size() * sizeof(std::uint64_t)}));
}

}  // namespace headrace::loader
