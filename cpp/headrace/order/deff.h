// Shuffle quality as a number: the variance of what a batch draws, relative to an ideal shuffle.
// Thread-safety: pure functions; a DeffMeter belongs to one thread at a time.
// Ownership: values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/order/run_order.h"

namespace headrace::order {

// What shuffle quality follows from, in samples; `shard` is the size of the shard in which an
// average sample lies.
struct DeffFacts {
  double batch = 1;  // over all ranks
  double chunk = 1;
  double window = 1;
  double samples = 1;  // of one epoch
  double lanes = 1;
  double shard = 1;
};

// The design effect of batches, as docs/order.md derives it: 1 is an ideal shuffle, below 1 is
// better than that (lanes balance batches over shards). Right to a tenth for the table there.
double predicted_deff(const DeffFacts& facts);
// The same for an order. In the unit layout the chunk is the unit that an average sample lies in;
// not shuffling draws whole shards.
double predicted_deff(const RunOrder& order, std::uint64_t batch);

// Measures any sequence: each sample's label is its shard, so this is the worst case in which a
// shard holds one kind of data. The figure is the mean over batches of sum((n_s - G p_s)^2) over
// shards, divided by its expectation when the G samples are drawn without replacement.
class DeffMeter {
 public:
  // `shard_sizes` sum to N > 1; 0 < batch < N.
  DeffMeter(std::span<const std::uint64_t> shard_sizes, std::uint64_t batch);

  void add(std::uint32_t shard);
  std::uint64_t batches() const { return batches_; }
  // Over all complete batches; NaN before the first, or when only one shard has samples.
  double deff() const;

 private:
  std::vector<double> share_;         // p_s
  std::vector<std::uint32_t> count_;  // n_s of the batch that is being filled
  std::vector<std::uint32_t> touched_;
  std::uint64_t samples_ = 0;
  std::uint64_t batch_;
  std::uint64_t filled_ = 0;
  std::uint64_t batches_ = 0;
  double share_squares_ = 0;  // sum of p_s^2
  double total_ = 0;          // sum over batches of sum((n_s - G p_s)^2)
};

struct DeffMeasure {
  double deff = 0;
  std::uint64_t batches = 0;
};

// Measures whole epochs of the order, starting with `epoch_first`. The batch must be below the
// number of samples and two shards must have samples.
Result<DeffMeasure> measure_deff(const RunOrder& order, std::uint64_t batch,
                                 std::uint64_t epoch_first, std::uint64_t epochs);

}  // namespace headrace::order
