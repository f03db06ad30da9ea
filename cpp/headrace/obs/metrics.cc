#include "headrace/obs/metrics.h"

#include <algorithm>
#include <cmath>

namespace headrace::obs {

Histogram::Snapshot Histogram::snapshot() const {
  Snapshot out;
  for (std::size_t b = 0; b < kBuckets; ++b) {
    out.buckets[b] = buckets_[b].load(std::memory_order_relaxed);
    out.count += out.buckets[b];
  }
  out.sum = sum_.load(std::memory_order_relaxed);
  out.max = max_.load(std::memory_order_relaxed);
  return out;
}

std::uint64_t Histogram::Snapshot::quantile(double q) const {
  if (count == 0) return 0;
  const auto wanted =
      static_cast<std::uint64_t>(std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count)));
  std::uint64_t seen = 0;
  for (std::size_t b = 0; b < kBuckets; ++b) {
    seen += buckets[b];
    if (seen >= wanted && buckets[b] > 0) {
      const std::uint64_t edge = b >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << b) - 1;
      return std::min(edge, max);
    }
  }
  return max;
}

Counter& Metrics::counter(std::string_view name) {
  MutexLock lock(mutex_);
  const auto found = counters_.find(name);
  return found != counters_.end() ? found->second : counters_[std::string(name)];
}

Histogram& Metrics::histogram(std::string_view name) {
  MutexLock lock(mutex_);
  const auto found = histograms_.find(name);
  return found != histograms_.end() ? found->second : histograms_[std::string(name)];
}

std::map<std::string, std::uint64_t> Metrics::counters() const {
  MutexLock lock(mutex_);
  std::map<std::string, std::uint64_t> out;
  for (const auto& [name, counter] : counters_) out.emplace(name, counter.value());
  return out;
}

std::map<std::string, Histogram::Snapshot> Metrics::histograms() const {
  MutexLock lock(mutex_);
  std::map<std::string, Histogram::Snapshot> out;
  for (const auto& [name, histogram] : histograms_) out.emplace(name, histogram.snapshot());
  return out;
}

}  // namespace headrace::obs
