#include "headrace/order/deff.h"

#include <algorithm>
#include <limits>
#include <string>

#include "headrace/base/check.h"

namespace headrace::order {
namespace {

// Lanes balance a batch over shards; over labels finer than shards they do not, so they are never
// credited with more than this.
constexpr double kStrataMin = 0.5;

double as_double(std::uint64_t n) { return static_cast<double>(n); }

// The size of the shard in which an average sample lies.
double mean_shard_of_sample(const RunOrder& order) {
  double squares = 0;
  for (std::uint32_t s = 0; s < order.shards(); ++s) {
    const double size = as_double(order.shard_samples(s));
    squares += size * size;
  }
  return squares / as_double(order.samples());
}

// The expected sum of squared shares when a stretch of length `x` is cut by a grid of spacing 1
// that begins at a uniformly random place: the chance that two of its points lie in one cell.
double same_cell(double x) { return x < 1 ? 1 - x / 3 : (x - 1.0 / 3) / (x * x); }

}  // namespace

double predicted_deff(const DeffFacts& facts) {
  HR_CHECK(facts.batch > 0 && facts.chunk > 0 && facts.window > 0 && facts.samples > 0 &&
               facts.lanes > 0 && facts.shard > 0,
           "DEFF of nothing");
  const double lanes = facts.lanes;
  const double lane = facts.samples / lanes;
  const double block = std::min(facts.window / lanes, lane);
  const double chunk = std::min(facts.chunk, lane);
  const double drawn = facts.batch / lanes;  // by one batch from one lane
  const double run = std::min(chunk, block);
  const double together = same_cell(block / chunk) * same_cell(drawn / block) - chunk / lane;
  const double within =
      1 + std::max(0.0, drawn - 1) * std::max(0.0, together) * same_cell(run / facts.shard);
  const double shards = facts.samples / facts.shard;
  const double strata = shards > 1 ? (shards - lanes) / (shards - 1) : 1;
  return within * std::clamp(lanes > 1 ? strata : 1, kStrataMin, 1.0);
}

double predicted_deff(const RunOrder& order, std::uint64_t batch) {
  HR_CHECK(batch > 0, "DEFF of an empty batch");
  const OrderSpec& spec = order.spec();
  DeffFacts facts;
  facts.batch = as_double(batch);
  facts.samples = as_double(order.samples());
  facts.shard = mean_shard_of_sample(order);
  if (!spec.shuffle) {
    return 1 + (facts.batch - 1) * (1 - facts.shard / facts.samples);
  }
  facts.chunk =
      spec.layout == Layout::kUnit ? order.mean_unit_samples() : as_double(spec.chunk_samples);
  facts.window = as_double(spec.window_samples);
  facts.lanes = order.lanes();
  return predicted_deff(facts);
}

DeffMeter::DeffMeter(std::span<const std::uint64_t> shard_sizes, std::uint64_t batch)
    : share_(shard_sizes.size()), count_(shard_sizes.size(), 0), batch_(batch) {
  for (const std::uint64_t size : shard_sizes) samples_ += size;
  HR_CHECK(batch > 0 && batch < samples_, "a batch of 1 .. N - 1 samples can be measured");
  for (std::size_t s = 0; s < shard_sizes.size(); ++s) {
    share_[s] = as_double(shard_sizes[s]) / as_double(samples_);
    share_squares_ += share_[s] * share_[s];
  }
}

void DeffMeter::add(std::uint32_t shard) {
  HR_CHECK(shard < count_.size(), "shard out of range");
  if (count_[shard]++ == 0) touched_.push_back(shard);
  if (++filled_ < batch_) return;
  // sum((n - G p)^2) = sum(n^2) - 2 G sum(n p) + G^2 sum(p^2), where only shards met have n > 0.
  const double g = as_double(batch_);
  double sum = g * g * share_squares_;
  for (const std::uint32_t s : touched_) {
    const double n = count_[s];
    sum += n * n - 2 * g * n * share_[s];
    count_[s] = 0;
  }
  total_ += sum;
  touched_.clear();
  filled_ = 0;
  ++batches_;
}

double DeffMeter::deff() const {
  const double g = as_double(batch_);
  const double n = as_double(samples_);
  const double ideal = g * (1 - share_squares_) * (n - g) / (n - 1);
  if (batches_ == 0 || !(ideal > 0)) return std::numeric_limits<double>::quiet_NaN();
  return total_ / as_double(batches_) / ideal;
}

Result<DeffMeasure> measure_deff(const RunOrder& order, std::uint64_t batch,
                                 std::uint64_t epoch_first, std::uint64_t epochs) {
  if (batch == 0 || batch >= order.samples())
    return invalid_argument("shuffle quality is measured with batches of 1 to " +
                            std::to_string(order.samples() - 1) + " samples, not " +
                            std::to_string(batch));
  std::vector<std::uint64_t> sizes(order.shards());
  for (std::uint32_t s = 0; s < order.shards(); ++s) sizes[s] = order.shard_samples(s);
  if (std::count_if(sizes.begin(), sizes.end(), [](std::uint64_t n) { return n > 0; }) < 2)
    return invalid_argument("shuffle quality is measured between shards and there is only one");
  constexpr std::uint64_t kEpochMax = std::uint64_t{1} << 15;
  if (epochs == 0 || epochs > kEpochMax || epoch_first > kEpochMax)
    return invalid_argument("shuffle quality is measured over 1 to " + std::to_string(kEpochMax) +
                            " epochs");
  DeffMeter meter(sizes, batch);
  constexpr std::uint64_t kBlock = 8192;
  std::vector<Placement> block(kBlock);
  // Batches do not span epochs: the rest of an epoch is left out.
  const std::uint64_t whole = order.samples() / batch * batch;
  for (std::uint64_t e = epoch_first; e < epoch_first + epochs; ++e) {
    for (std::uint64_t g = 0; g < whole; g += kBlock) {
      const std::span<Placement> some(block.data(), std::min(kBlock, whole - g));
      order.fill(e * order.samples() + g, some);
      for (const Placement& at : some) meter.add(at.shard);
    }
  }
  return DeffMeasure{meter.deff(), meter.batches()};
}

}  // namespace headrace::order
