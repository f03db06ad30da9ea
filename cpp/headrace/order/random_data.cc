#include "headrace/order/random_data.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>

namespace headrace::order {

std::uint64_t pick(std::uint64_t low, std::uint64_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::uint64_t>(low, high));
}

RunOrder TestData::make() const {
  auto order = RunOrder::make(spec, shards, units);
  EXPECT_TRUE(order.is_ok()) << order.status().to_string();
  return std::move(order).value();
}

std::uint64_t TestData::samples() const {
  std::uint64_t n = 0;
  for (const std::uint64_t size : shards) n += size;
  return n;
}

TestData any_data(std::uint64_t samples_max) {
  TestData data;
  const auto shards = pick(1, 12);
  const auto each = pick(1, samples_max / shards + 2);
  for (std::uint64_t s = 0; s < shards; ++s) data.shards.push_back(pick(0, each));
  if (data.samples() == 0) data.shards.back() = 1;
  OrderSpec& spec = data.spec;
  spec.seed = *rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<std::uint64_t>());
  spec.shuffle = *rc::gen::weightedElement<bool>({{9, true}, {1, false}});
  spec.lanes = 1U << *rc::gen::inRange(0, 8);
  spec.chunk_samples = pick(1, 80);
  spec.window_samples = spec.lanes * pick(1, 300);
  spec.layout = *rc::gen::element(Layout::kChunk, Layout::kUnit);
  spec.source_name = *rc::gen::element<std::string>("", "web");
  if (spec.layout == Layout::kUnit && *rc::gen::arbitrary<bool>()) {
    for (const std::uint64_t size : data.shards) {
      std::vector<std::uint64_t> units;
      for (std::uint64_t left = size; left > 0;) {
        units.push_back(std::min(left, pick(0, 60)));
        left -= units.back();
      }
      data.units.push_back(std::move(units));
    }
  }
  return data;
}

}  // namespace headrace::order
