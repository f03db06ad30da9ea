// SampleSet: which samples of a data set a view holds, in which order (select, take, split, ...).
// Thread-safety: immutable; any thread.
// Ownership: a value that shares its table; copies are cheap.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/status.h"

namespace headrace::loader {

// Where a sample of a view lies in the data set.
struct SampleRef {
  std::uint32_t shard = 0;
  std::uint64_t sample = 0;   // within the shard
  std::uint64_t ordinal = 0;  // number in the whole data set, in stored order
};

class SampleSet {
 public:
  // All samples, in stored order. `shard_samples` are the sizes of the data set's shards.
  static SampleSet all(std::vector<std::uint64_t> shard_samples);

  // Samples of the view.
  std::uint64_t size() const;
  // Samples of the data set behind it.
  std::uint64_t universe() const;
  // True when the view is the whole data set in stored order.
  bool is_all() const;
  // Sample `i` of the view; `i` must be below size().
  SampleRef at(std::uint64_t i) const;

  // Views of this view, by position in it. An index past the end is InvalidArgument and names it.
  Result<SampleSet> select(std::vector<std::uint64_t> indices) const;
  SampleSet take(std::uint64_t n) const;
  // Two complementary views, each in this view's order. A sample belongs to the first by its number
  // in the data set and `seed` alone, so data appended later does not move it. `fraction` is in
  // [0, 1].
  std::pair<SampleSet, SampleSet> split(double fraction, std::uint64_t seed) const;

  // The runs of the view that lie in one shard each, as the order's "shards": their sizes, and what
  // sample `i` of run `r` is.
  const std::vector<std::uint64_t>& run_sizes() const;
  SampleRef at(std::uint32_t run, std::uint64_t i) const;

  // Part of the identity of what is read: empty for the whole data set, else a digest of the
  // choice.
  std::string fingerprint() const;

 private:
  struct Table;
  explicit SampleSet(std::shared_ptr<const Table> table) : table_(std::move(table)) {}
  SampleSet from_ordinals(std::vector<std::uint64_t> ordinals) const;
  std::shared_ptr<const Table> table_;
};

}  // namespace headrace::loader
