// The engine: making a loader from Python's arguments, waiting for batches, handing columns over.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "array.h"
#include "bindings.h"
#include "dataset.h"
#include "errors.h"
#include "gil.h"
#include "headrace/loader/loader.h"
#include "stage.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

using SharedLoader = Guarded<std::unique_ptr<loader::Loader>>;

struct LoaderHandle {
  std::shared_ptr<SharedLoader> shared;

  explicit LoaderHandle(std::shared_ptr<SharedLoader> made) : shared(std::move(made)) {}
  LoaderHandle(LoaderHandle&&) = default;
  // Waits for the workers, which may be waiting for the GIL.
  ~LoaderHandle() {
    if (!shared) return;
    // Python's collector may run in a transform and find this loader there; its worker cannot wait
    // for itself.
    if (is_in_stage()) {
      std::thread([kept = std::move(shared)]() mutable { kept.reset(); }).detach();
      return;
    }
    const GilRelease release;
    shared.reset();
  }

  loader::Loader& get() const {
    if (shared->is_foreign()) {
      raise(invalid_argument(
          "this loader was started before the process forked, and its threads are not here; make "
          "the loader in the child process"));
    }
    return *shared->value();
  }
};

loader::BadSamples bad_samples_of(const std::string& name) {
  if (name == "raise") return loader::BadSamples::kRaise;
  if (name == "skip") return loader::BadSamples::kSkip;
  if (name == "substitute") return loader::BadSamples::kSubstitute;
  raise(invalid_argument("bad_samples=\"" + name + "\" is none of raise, skip, substitute"));
}

loader::LoaderOptions make_options(
    std::uint64_t global_batch, std::uint32_t rank, std::uint32_t world,
    const order::OrderRequest& request, const std::string& epoch_end, const std::string& assignment,
    const std::vector<PositionPair>& skip, std::vector<std::string> columns,
    const std::map<std::string, codec::ImageSpec>& decode, const std::string& bad_samples,
    std::uint64_t memory, std::uint32_t batches_ahead, double read_timeout, double batch_timeout) {
  loader::LoaderOptions options;
  options.global_batch = global_batch;
  options.rank = rank;
  options.world = world;
  options.order = request;
  options.epoch_end = epoch_end_of(epoch_end);
  options.assignment = assignment_of(assignment);
  options.skip = skip_list(skip);
  options.columns = std::move(columns);
  options.decode = decode;
  options.bad_samples = bad_samples_of(bad_samples);
  options.memory = memory;
  options.batches_ahead = batches_ahead;
  options.read_timeout = seconds_to_duration(read_timeout, "read_timeout");
  options.batch_timeout = seconds_to_duration(batch_timeout, "batch_timeout");
  return options;
}

LoaderHandle make_loader(const DatasetHandle& dataset, const loader::SampleSet& samples,
                         const loader::LoaderOptions& options, std::size_t threads,
                         const nb::object& stage) {
  auto runtime = std::make_shared<Runtime>(threads);
  std::shared_ptr<loader::ExternalStage> external;
  if (!stage.is_none()) external = std::make_shared<PythonStage>(stage, threads);
  std::shared_ptr<loader::Dataset> data = dataset.share();
  auto made = [&] {
    const GilRelease release;
    return loader::Loader::make(std::move(data), samples, options,
                                {runtime->executor(), runtime->metrics(), log_sink()},
                                std::move(external));
  }();
  return LoaderHandle(std::make_shared<SharedLoader>(std::move(runtime), check(std::move(made))));
}

// Waits in short slices, so that signals are seen; a batch that is there costs none.
BatchHandle next_batch(const LoaderHandle& self) {
  loader::Loader& loader = self.get();
  // Stays alive when another thread drops the last reference meanwhile.
  const auto keep = self.shared;
  const Clock& clock = keep->runtime()->executor().clock();
  for (;;) {
    auto got = [&] {
      const GilRelease release;
      return loader.next(clock.now() + kSignalInterval);
    }();
    std::shared_ptr<loader::Batch> batch = check(std::move(got));
    if (batch) return BatchHandle(std::move(batch));
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

Array column_array(const BatchHandle& batch, MutableBytes bytes, format::DType dtype,
                   std::vector<std::int64_t> shape) {
  return Array(batch.keep, bytes, element_type(dtype), std::move(shape));
}

nb::object flags(const BatchHandle& batch, MutableBytes bytes) {
  if (bytes.empty()) return nb::none();
  return nb::cast(
      Array(batch.keep, bytes, kBoolElements, {static_cast<std::int64_t>(bytes.size())}));
}

// (name, kind, is ragged, values, offsets, shapes, valid) of every column.
nb::list list_columns(const BatchHandle& self) {
  const auto rows = static_cast<std::int64_t>(self.batch->rows);
  nb::list out;
  for (const loader::BatchColumn& column : self.batch->columns) {
    nb::object offsets = nb::none();
    nb::object shapes = nb::none();
    std::vector<std::int64_t> shape;
    if (column.is_ragged) {
      shape = {static_cast<std::int64_t>(column.values.size() / format::dtype_size(column.dtype))};
      offsets = nb::cast(column_array(self, column.offsets, format::DType::kI64, {rows + 1}));
      if (!column.shapes.empty()) {
        shapes = nb::cast(column_array(self, column.shapes, format::DType::kI64,
                                       {rows, std::int64_t{column.dimensions}}));
      }
    } else {
      shape.push_back(rows);
      for (const std::uint64_t side : column.shape)
        shape.push_back(static_cast<std::int64_t>(side));
    }
    out.append(nb::make_tuple(column.name, kind_name(column.kind), column.is_ragged,
                              column_array(self, column.values, column.dtype, std::move(shape)),
                              offsets, shapes, flags(self, column.valid)));
  }
  return out;
}

nb::object external_number(const BatchHandle& self) {
  if (!self.batch->external) return nb::none();
  return nb::int_(*static_cast<const std::uint64_t*>(self.batch->external.get()));
}

nb::dict plan_dict(const LoaderHandle& self) {
  const loader::LoaderPlan& plan = self.get().plan();
  nb::dict out;
  out["samples"] = plan.samples;
  out["lanes"] = plan.lanes;
  out["chunk_samples"] = plan.order.chunk_samples;
  out["window_samples"] = plan.order.window_samples;
  out["deff"] = plan.deff;
  out["is_local"] = plan.is_local;
  out["window_bytes"] = plan.window_bytes;
  return out;
}

nb::dict memory_dict(const LoaderHandle& self) {
  const auto usage = self.get().memory();
  nb::dict out;
  out["budget"] = usage.budget;
  out["leased"] = usage.leased;
  out["leases"] = usage.leases;
  out["leased_peak"] = usage.leased_peak;
  return out;
}

void bind_batch(nb::module_& m) {
  nb::class_<BatchHandle>(m, "Batch")
      .def_prop_ro("epoch", [](const BatchHandle& b) { return b.batch->epoch; })
      .def_prop_ro("begin", [](const BatchHandle& b) { return b.batch->begin; })
      .def_prop_ro("next", [](const BatchHandle& b) { return b.batch->next; })
      .def_prop_ro("ends_epoch", [](const BatchHandle& b) { return b.batch->ends_epoch; })
      .def_prop_ro("rows", [](const BatchHandle& b) { return b.batch->rows; })
      .def_prop_ro("weight", [](const BatchHandle& b) { return b.batch->weight; })
      .def_prop_ro("index",
                   [](const BatchHandle& b) {
                     return column_array(b, b.batch->index, format::DType::kI64,
                                         {static_cast<std::int64_t>(b.batch->rows)});
                   })
      .def_prop_ro(
          "mask", [](const BatchHandle& b) { return flags(b, b.batch->mask); },
          nb::sig("def mask(self) -> Array | None"))
      .def_prop_ro("columns", &list_columns,
                   nb::sig("def columns(self) -> list[tuple[str, str, bool, Array, Array | None, "
                           "Array | None, Array | None]]"))
      .def_prop_ro("external", &external_number, nb::sig("def external(self) -> int | None"));
}

void bind_options(nb::module_& m) {
  nb::class_<loader::LoaderOptions>(m, "LoaderOptions")
      .def_static("make", &make_options, nb::kw_only(), "global_batch"_a, "rank"_a, "world"_a,
                  "order"_a, "epoch_end"_a, "assignment"_a, "skip"_a, "columns"_a, "decode"_a,
                  "bad_samples"_a, "memory"_a, "batches_ahead"_a, "read_timeout"_a,
                  "batch_timeout"_a);
}

}  // namespace

void bind_loader(nb::module_& m) {
  bind_batch(m);
  bind_options(m);
  nb::class_<LoaderHandle>(m, "Loader")
      .def_static("make", &make_loader, "dataset"_a, "samples"_a, "options"_a, "threads"_a,
                  "stage"_a = nb::none())
      .def_prop_ro("is_foreign", [](const LoaderHandle& l) { return l.shared->is_foreign(); })
      .def_prop_ro("plan", &plan_dict, nb::sig("def plan(self) -> dict[str, int | float | bool]"))
      .def("next", &next_batch)
      .def_prop_ro("position", [](const LoaderHandle& l) { return l.get().position(); })
      .def(
          "seek",
          [](const LoaderHandle& l, std::uint64_t position) {
            loader::Loader& loader = l.get();
            const Status status = [&] {
              const GilRelease release;
              return loader.seek(position);
            }();
            check(status);
          },
          "position"_a)
      .def("state", [](const LoaderHandle& l) { return check(l.get().state().to_json()); })
      .def(
          "load_state",
          [](const LoaderHandle& l, const std::string& json) {
            loader::Loader& loader = l.get();
            const order::OrderState state = check(order::OrderState::from_json(json));
            const Status status = [&] {
              const GilRelease release;
              return loader.load_state(state);
            }();
            check(status);
          },
          "json"_a)
      .def(
          "settle",
          [](const LoaderHandle& l, std::uint64_t t) {
            return check(l.get().planner()->settle(t));
          },
          "t"_a)
      .def(
          "steps_left",
          [](const LoaderHandle& l, std::uint64_t t) {
            return check(l.get().planner()->steps_left(t));
          },
          "t"_a)
      .def("memory", &memory_dict, nb::sig("def memory(self) -> dict[str, int]"))
      .def(
          "counters",
          [](const LoaderHandle& l) {
            (void)l.get();
            return counters_dict(l.shared->runtime()->metrics());
          },
          nb::sig("def counters(self) -> dict[str, int]"))
      .def(
          "histograms",
          [](const LoaderHandle& l) {
            (void)l.get();
            return histograms_dict(l.shared->runtime()->metrics());
          },
          nb::sig("def histograms(self) -> dict[str, dict[str, int]]"))
      .def("close", [](const LoaderHandle& l) {
        if (l.shared->is_foreign()) return;
        const GilRelease release;
        l.shared->value()->close();
      });
}

}  // namespace headrace::python
