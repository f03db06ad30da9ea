// Random data sets and specs for the property tests of this folder, drawn inside rc::check.
// Thread-safety: not safe; RapidCheck draws on one thread.
// Ownership: values.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/order/run_order.h"

namespace headrace::order {

// Uniform in [low, high). RapidCheck's own range grows with the progress of a test and begins with
// nothing but `low`.
std::uint64_t pick(std::uint64_t low, std::uint64_t high);

struct TestData {
  OrderSpec spec;
  std::vector<std::uint64_t> shards;
  std::vector<std::vector<std::uint64_t>> units;

  RunOrder make() const;
  std::uint64_t samples() const;
};

// Up to about `samples_max` samples, at least one; empty shards and empty units included.
TestData any_data(std::uint64_t samples_max);

}  // namespace headrace::order
