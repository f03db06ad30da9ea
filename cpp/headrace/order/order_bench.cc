#include <benchmark/benchmark.h>

#include <vector>

#include "headrace/base/rng.h"
#include "headrace/order/permutation.h"
#include "headrace/order/run_order.h"

namespace headrace::order {
namespace {

// `shards` shards of a million samples.
RunOrder order_of(std::int64_t shards, std::uint32_t lanes) {
  OrderSpec spec;
  spec.seed = 17;
  spec.lanes = lanes;
  spec.chunk_samples = 100;
  spec.window_samples = 1 << 20;
  return *RunOrder::make(spec,
                         std::vector<std::uint64_t>(static_cast<std::size_t>(shards), 1'000'000));
}

void sample_at(benchmark::State& state) {
  const RunOrder order = order_of(state.range(0), 64);
  std::uint64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(order.sample_at(mix64(i++) % order.samples()));
}
BENCHMARK(sample_at)->Arg(1)->Arg(1000)->Arg(1'000'000);

void position_of(benchmark::State& state) {
  const RunOrder order = order_of(state.range(0), 64);
  std::uint64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(order.position_of(mix64(i++) % order.samples(), 1));
}
BENCHMARK(position_of)->Arg(1)->Arg(1000)->Arg(1'000'000);

void chunk_at(benchmark::State& state) {
  const RunOrder order = order_of(1000, 64);
  std::uint64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(order.chunk_at(mix64(i++) % order.samples()));
}
BENCHMARK(chunk_at);

// items_per_second counts samples.
void fill(benchmark::State& state) {
  const RunOrder order = order_of(1000, static_cast<std::uint32_t>(state.range(1)));
  std::vector<Placement> out(static_cast<std::size_t>(state.range(0)));
  std::uint64_t t = 12345;
  for (auto _ : state) {
    order.fill(t, out);
    t += out.size();
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(fill)->ArgsProduct({{64, 1024, 65536}, {1, 64, 1024}});

void new_epoch(benchmark::State& state) {
  const RunOrder order = order_of(1000, static_cast<std::uint32_t>(state.range(0)));
  std::uint64_t epoch = 0;
  for (auto _ : state) benchmark::DoNotOptimize(order.lane_of(++epoch * order.samples()));
}
BENCHMARK(new_epoch)->Arg(64)->Arg(16384);

void permutation_fill(benchmark::State& state) {
  const auto n = static_cast<std::uint64_t>(state.range(0));
  const Permutation pi(Key{1, 2}, n);
  std::vector<std::uint64_t> out(4096);
  for (auto _ : state) {
    pi.fill(17, out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * 4096);
}
BENCHMARK(permutation_fill)->Arg(1 << 18)->Arg((1 << 18) + 1)->Arg(1LL << 40);

}  // namespace
}  // namespace headrace::order
