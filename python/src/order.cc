// The run order for tests, explanations and shuffle quality; loaders use it without coming by here.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "array.h"
#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "headrace/order/deff.h"
#include "headrace/order/order_spec.h"
#include "headrace/order/run_order.h"
#include "headrace/order/steps.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

// At most this many positions are listed in one call; a caller that wants more asks in pieces.
constexpr std::uint64_t kListedMax = std::uint64_t{1} << 28;

order::OrderRequest make_request(std::uint64_t seed, bool shuffle, std::uint64_t lanes,
                                 std::optional<order::Amount> chunk,
                                 std::optional<order::Amount> window, bool unit_layout) {
  order::OrderRequest request;
  request.seed = seed;
  request.shuffle = shuffle;
  request.lanes = lanes;
  request.chunk = chunk;
  request.window = window;
  request.layout = unit_layout ? order::Layout::kUnit : order::Layout::kChunk;
  return request;
}

Array new_array(std::uint64_t n, std::int64_t columns, format::DType dtype) {
  auto memory =
      std::make_shared<std::vector<std::int64_t>>(n * static_cast<std::uint64_t>(columns));
  const MutableBytes bytes{reinterpret_cast<std::byte*>(memory->data()),
                           memory->size() * sizeof(std::int64_t)};
  return Array(memory, bytes, element_type(dtype), {static_cast<std::int64_t>(n), columns});
}

// Rows (shard, sample in the shard, number in the data set) of n positions from t on.
Array fill(const order::RunOrder& run, std::uint64_t t, std::uint64_t n) {
  if (n > kListedMax || t > order::kPositionMax) {
    raise(invalid_argument("asked for " + std::to_string(n) + " positions from " +
                           std::to_string(t) + " on; at most 2^28 at once, below 2^62"));
  }
  Array out = new_array(n, 3, format::DType::kI64);
  auto* rows = static_cast<std::int64_t*>(out.data);
  const GilRelease release;
  std::vector<order::Placement> part;
  for (std::uint64_t done = 0; done < n; done += part.size()) {
    part.resize(std::min<std::uint64_t>(n - done, 4096));
    run.fill(t + done, part);
    for (const order::Placement& at : part) {
      *rows++ = at.shard;
      *rows++ = static_cast<std::int64_t>(at.sample);
      *rows++ = static_cast<std::int64_t>(at.ordinal);
    }
  }
  return out;
}

std::uint64_t position_of(const order::RunOrder& run, std::uint64_t ordinal, std::uint64_t epoch) {
  if (ordinal >= run.samples() || epoch > order::kPositionMax / run.samples()) {
    raise(invalid_argument("sample " + std::to_string(ordinal) + " in epoch " +
                           std::to_string(epoch) + " is not in an order over " +
                           std::to_string(run.samples()) + " samples"));
  }
  return run.position_of(ordinal, epoch);
}

order::StepPlanner make_planner(const order::RunOrder& run, std::uint64_t global_batch,
                                const std::string& epoch_end, const std::string& assignment,
                                const std::vector<PositionPair>& skip) {
  order::StepSpec spec;
  spec.global_batch = global_batch;
  spec.epoch_end = epoch_end_of(epoch_end);
  spec.assignment = assignment_of(assignment);
  spec.skip = skip_list(skip);
  return check(order::StepPlanner::make(run, spec));
}

// One step from t on: (begin, next, epoch, ends_epoch, [(positions, real)] of each rank).
using Share = std::pair<std::vector<std::uint64_t>, std::uint64_t>;
std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, bool, std::vector<Share>> plan(
    const order::StepPlanner& planner, std::uint64_t t, std::uint64_t world) {
  check(planner.check_world(world));
  const order::Step step = check(planner.plan(t));
  std::vector<Share> shares;
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    order::RankShare share = check(planner.assign(step, rank, world));
    shares.emplace_back(std::move(share.positions), share.real);
  }
  return {step.begin, step.next, step.epoch, step.ends_epoch, std::move(shares)};
}

}  // namespace

order::EpochEnd epoch_end_of(const std::string& name) {
  const auto end = order::epoch_end_from_name(name);
  if (!end) {
    raise(invalid_argument("epoch_end=\"" + name + "\" is none of carry, drop, pad, partial"));
  }
  return *end;
}

order::Assignment assignment_of(const std::string& name) {
  const auto assignment = order::assignment_from_name(name);
  if (!assignment)
    raise(invalid_argument("assignment=\"" + name + "\" is neither local nor strict"));
  return *assignment;
}

order::SkipList skip_list(const std::vector<PositionPair>& skip) {
  std::vector<order::Interval> intervals;
  intervals.reserve(skip.size());
  for (const auto& [begin, end] : skip) intervals.push_back({begin, end});
  return check(order::SkipList::make(std::move(intervals)));
}

void bind_order(nb::module_& m) {
  nb::class_<order::Amount>(m, "Amount")
      .def_static("samples", &order::Amount::samples, "n"_a)
      .def_static("bytes", &order::Amount::bytes, "n"_a);

  nb::class_<order::OrderRequest>(m, "OrderRequest")
      .def_static("make", &make_request, "seed"_a, "shuffle"_a, "lanes"_a, "chunk"_a = nb::none(),
                  "window"_a = nb::none(), "unit_layout"_a = false);

  nb::class_<order::RunOrder>(m, "RunOrder")
      .def_static(
          "make",
          [](const order::OrderRequest& request, std::vector<std::uint64_t> shard_sizes,
             std::uint64_t stored_bytes) {
            std::uint64_t samples = 0;
            for (const std::uint64_t n : shard_sizes) samples += n;
            order::OrderSpec spec = check(order::resolve_order(request, samples, stored_bytes));
            return check(order::RunOrder::make(std::move(spec), std::move(shard_sizes)));
          },
          "request"_a, "shard_sizes"_a, "stored_bytes"_a)
      .def_prop_ro("samples", &order::RunOrder::samples)
      .def_prop_ro("lanes", &order::RunOrder::lanes)
      .def_prop_ro("chunk_samples", [](const order::RunOrder& r) { return r.spec().chunk_samples; })
      .def_prop_ro("window_samples",
                   [](const order::RunOrder& r) { return r.spec().window_samples; })
      .def("fill", &fill, "t"_a, "n"_a)
      .def("position_of", &position_of, "ordinal"_a, "epoch"_a)
      .def(
          "deff",
          [](const order::RunOrder& run, std::uint64_t batch) {
            if (batch == 0) raise(invalid_argument("a batch holds at least one sample"));
            return order::predicted_deff(run, batch);
          },
          "batch"_a)
      .def(
          "measure_deff",
          [](const order::RunOrder& run, std::uint64_t batch, std::uint64_t epochs) {
            const GilRelease release;
            const auto measured = order::measure_deff(run, batch, 0, epochs);
            const nb::gil_scoped_acquire acquire;
            return check(measured).deff;
          },
          "batch"_a, "epochs"_a);

  nb::class_<order::StepPlanner>(m, "StepPlanner")
      .def_static("make", &make_planner, "run"_a, "global_batch"_a, "epoch_end"_a, "assignment"_a,
                  "skip"_a)
      .def(
          "settle",
          [](const order::StepPlanner& planner, std::uint64_t t) {
            return check(planner.settle(t));
          },
          "t"_a)
      .def(
          "steps_left",
          [](const order::StepPlanner& planner, std::uint64_t t) {
            return check(planner.steps_left(t));
          },
          "t"_a)
      .def("plan", &plan, "t"_a, "world"_a);
}

}  // namespace headrace::python
