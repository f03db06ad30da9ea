// Opening data sets, reading single samples, and the choice of samples behind a view.
#include "dataset.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "array.h"
#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

store::StoreOptions store_options(
    std::optional<std::string> endpoint, std::optional<std::string> region,
    std::optional<std::string> profile, bool anonymous, std::optional<std::string> addressing,
    std::optional<std::string> ca_bundle, std::optional<std::uint32_t> connections,
    std::optional<std::uint32_t> attempts, std::optional<double> timeout_seconds) {
  store::StoreOptions options;
  options.endpoint = std::move(endpoint);
  options.region = std::move(region);
  options.profile = std::move(profile);
  options.anonymous = anonymous;
  options.addressing = std::move(addressing);
  options.ca_bundle = std::move(ca_bundle);
  if (connections) options.connections = *connections;
  if (attempts) options.attempts = *attempts;
  if (timeout_seconds) options.request_timeout = seconds_to_duration(*timeout_seconds, "timeout");
  return options;
}

DatasetHandle open_dataset(const std::string& url, std::optional<std::string> split,
                           std::optional<std::string> index, const store::StoreOptions& store,
                           std::size_t threads) {
  loader::OpenOptions options;
  options.url = url;
  options.split = std::move(split);
  options.index = std::move(index);
  options.store = store;
  auto runtime = std::make_shared<Runtime>(threads);
  auto opened = run_interruptibly(
      [options, runtime] { return loader::Dataset::open(options, runtime->store_deps()); });
  return DatasetHandle(
      std::make_shared<SharedDataset>(std::move(runtime), check(std::move(opened))));
}

bool is_remote(const std::string& url) {
  return url.find("://") != std::string::npos && url.rfind("file://", 0) != 0;
}

nb::list read_sample(const DatasetHandle& self, std::uint64_t ordinal) {
  loader::Dataset& dataset = self.get();
  if (ordinal >= dataset.samples()) {
    throw nb::index_error(("sample " + std::to_string(ordinal) + " of a data set of " +
                           std::to_string(dataset.samples()) + " samples")
                              .c_str());
  }
  // A local file takes microseconds; a thread for it would take longer.
  auto read = [&] {
    if (is_remote(dataset.url())) {
      return run_interruptibly(
          [shared = self.shared, ordinal] { return shared->value()->read(ordinal); });
    }
    const GilRelease release;
    return dataset.read(ordinal);
  }();
  const loader::LoadedSample sample = check(std::move(read));
  const auto& fields = dataset.schema().fields;
  nb::list values;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    values.append(to_python(fields[i], sample.values[i]));
  }
  return values;
}

// Of every value of an array field; None where values differ.
nb::object shape_of(const format::Field& field) {
  if (!field.type.shape) return nb::none();
  nb::list shape;
  for (const std::uint64_t side : *field.type.shape) shape.append(side);
  return nb::tuple(shape);
}

nb::list list_shards(const DatasetHandle& self) {
  nb::list out;
  for (const format::ShardInfo& shard : self.get().reader().shards()) {
    nb::dict hashes;
    for (const format::NamedHash& hash : shard.hashes)
      hashes[nb::str(hash.algorithm.c_str())] = hash.hex;
    out.append(nb::make_tuple(shard.name, shard.bytes, shard.samples, hashes));
  }
  return out;
}

// Positions in a view as Python gives them: an array of int64.
std::vector<std::uint64_t> to_indices(const nb::object& array) {
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
    throw nb::python_error();
  }
  std::vector<std::uint64_t> out(static_cast<std::size_t>(view.len) / sizeof(std::uint64_t));
  const bool is_int64 = view.itemsize == 8 && view.format &&
                        std::string_view("lq").find(*view.format) != std::string_view::npos;
  if (is_int64 && !out.empty()) std::memcpy(out.data(), view.buf, out.size() * sizeof out[0]);
  PyBuffer_Release(&view);
  if (!is_int64) throw nb::type_error("indices must be an array of int64");
  return out;
}

// The numbers in the data set of positions [first, first + n) of the view.
Array ordinals(const loader::SampleSet& set, std::uint64_t first, std::uint64_t n) {
  if (first > set.size() || n > set.size() - first)
    throw nb::index_error("past the end of the view");
  auto memory = std::make_shared<std::vector<std::int64_t>>(n);
  for (std::uint64_t i = 0; i < n; ++i) {
    (*memory)[i] = static_cast<std::int64_t>(set.at(first + i).ordinal);
  }
  const MutableBytes bytes{reinterpret_cast<std::byte*>(memory->data()), n * sizeof(std::int64_t)};
  return Array(memory, bytes, element_type(format::DType::kI64), {static_cast<std::int64_t>(n)});
}

void bind_sample_set(nb::module_& m) {
  using loader::SampleSet;
  nb::class_<SampleSet>(m, "SampleSet")
      .def_prop_ro("size", &SampleSet::size)
      .def_prop_ro("universe", &SampleSet::universe)
      .def_prop_ro("is_all", &SampleSet::is_all)
      .def_prop_ro("run_sizes",
                   [](const SampleSet& set) { return std::vector<std::uint64_t>(set.run_sizes()); })
      .def_prop_ro("fingerprint", &SampleSet::fingerprint)
      .def(
          "ordinal",
          [](const SampleSet& set, std::uint64_t i) {
            if (i >= set.size()) throw nb::index_error("past the end of the view");
            return set.at(i).ordinal;
          },
          "i"_a)
      .def("ordinals", &ordinals, "first"_a, "n"_a)
      .def(
          "select",
          [](const SampleSet& set, const nb::object& indices) {
            return check(set.select(to_indices(indices)));
          },
          "indices"_a)
      .def("take", &SampleSet::take, "n"_a)
      .def("split", &SampleSet::split, "fraction"_a, "seed"_a);
}

}  // namespace

DatasetHandle::~DatasetHandle() {
  if (!shared) return;
  const GilRelease release;
  shared.reset();
}

loader::Dataset& DatasetHandle::get() const {
  if (shared->is_foreign()) {
    raise(
        invalid_argument("this data set was opened before the process forked; open it again here"));
  }
  return *shared->value();
}

std::shared_ptr<loader::Dataset> DatasetHandle::share() const {
  loader::Dataset& dataset = get();
  return {shared, &dataset};
}

void bind_dataset(nb::module_& m) {
  nb::class_<format::Field>(m, "Field")
      .def_ro("name", &format::Field::name)
      .def_prop_ro("type", [](const format::Field& f) { return f.type.to_string(); })
      .def_prop_ro("kind", [](const format::Field& f) { return kind_name(f.type.kind); })
      .def_prop_ro("nullable", [](const format::Field& f) { return f.type.nullable; })
      .def_prop_ro("dtype",
                   [](const format::Field& f) -> std::optional<std::string> {
                     if (!f.type.dtype) return std::nullopt;
                     return std::string(format::dtype_name(*f.type.dtype));
                   })
      .def_prop_ro("shape", &shape_of, nb::sig("def shape(self) -> tuple[int, ...] | None"));
  nb::class_<store::StoreOptions>(m, "StoreOptions")
      .def_static("make", &store_options, "endpoint"_a = nb::none(), "region"_a = nb::none(),
                  "profile"_a = nb::none(), "anonymous"_a = false, "addressing"_a = nb::none(),
                  "ca_bundle"_a = nb::none(), "connections"_a = nb::none(),
                  "attempts"_a = nb::none(), "timeout"_a = nb::none());
  bind_sample_set(m);
  nb::class_<DatasetHandle>(m, "Dataset")
      .def_static("open", &open_dataset, "url"_a, "split"_a, "index"_a, "store"_a, "threads"_a)
      .def_prop_ro("is_foreign", [](const DatasetHandle& d) { return d.shared->is_foreign(); })
      .def_prop_ro("url", [](const DatasetHandle& d) { return d.get().url(); })
      .def_prop_ro(
          "format",
          [](const DatasetHandle& d) { return std::string(d.get().reader().format_name()); })
      .def_prop_ro("samples", [](const DatasetHandle& d) { return d.get().samples(); })
      .def_prop_ro("stored_bytes", [](const DatasetHandle& d) { return d.get().stored_bytes(); })
      .def_prop_ro("identity", [](const DatasetHandle& d) { return d.get().identity(); })
      .def_prop_ro("fields",
                   [](const DatasetHandle& d) {
                     return std::vector<format::Field>(d.get().schema().fields);
                   })
      .def_prop_ro("shards", &list_shards,
                   nb::sig("def shards(self) -> list[tuple[str, int, int, dict[str, str]]]"))
      .def_prop_ro("all", [](const DatasetHandle& d) { return d.get().all(); })
      .def("read", &read_sample, "ordinal"_a,
           nb::sig("def read(self, ordinal: int) -> list[object]"))
      .def(
          "describe",
          [](const DatasetHandle& d, std::uint64_t ordinal) {
            const loader::Dataset& dataset = d.get();
            if (ordinal >= dataset.samples()) throw nb::index_error("past the end");
            const loader::SampleRef at = dataset.all().at(ordinal);
            return dataset.describe(at.shard, at.sample);
          },
          "ordinal"_a)
      .def(
          "counters",
          [](const DatasetHandle& d) {
            (void)d.get();
            return counters_dict(d.shared->runtime()->metrics());
          },
          nb::sig("def counters(self) -> dict[str, int]"))
      .def("close", [](const DatasetHandle& d) {
        if (d.shared->is_foreign()) return;
        const GilRelease release;
        d.shared->value()->close();
      });
}

}  // namespace headrace::python
