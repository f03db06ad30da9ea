#include "headrace/order/deff.h"

#include <algorithm>
#include <limits>
#include <string>

#include "headrace/base/check.h"

namespace headrace::order {
namespace {

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

double formula(double batch, double chunk, double window, double samples) {
  const double near = std::min(window, samples);
  return 1 + (batch - 1) * std::max(0.0, chunk / near - chunk / samples);
}

}  // namespace

double predicted_deff(std::uint64_t batch, std::uint64_t chunk, std::uint64_t window,
                      std::uint64_t samples) {
  HR_CHECK(batch > 0 && chunk > 0 && window > 0 && samples > 0, "DEFF of nothing");
  return formula(as_double(batch), as_double(std::min(chunk, samples)), as_double(window),
                 as_double(samples));
}

double predicted_deff(const RunOrder& order, std::uint64_t batch) {
  HR_CHECK(batch > 0, "DEFF of an empty batch");
  const OrderSpec& spec = order.spec();
  const double samples = as_double(order.samples());
  if (!spec.shuffle) {
    const double shard = mean_shard_of_sample(order);
    return formula(as_double(batch), shard, shard, samples);
  }
  const double chunk = spec.layout == Layout::kUnit
                           ? order.mean_unit_samples()
                           : as_double(std::min(spec.chunk_samples, order.samples()));
  return formula(as_double(batch), chunk, as_double(spec.window_samples), samples);
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
