// Packing samples into data sets.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "headrace/loader/dataset_writer.h"
#include "process.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

using SharedWriter = Guarded<std::unique_ptr<loader::DatasetWriter>>;
using Columns = std::vector<std::pair<std::string, std::string>>;

struct WriterHandle {
  std::unique_ptr<SharedWriter> shared;

  explicit WriterHandle(std::unique_ptr<SharedWriter> made) : shared(std::move(made)) {}
  WriterHandle(WriterHandle&&) = default;
  ~WriterHandle() { abandon(); }

  loader::DatasetWriter& get() const {
    if (!shared) raise(cancelled("the writer is closed"));
    if (shared->is_foreign()) {
      raise(invalid_argument("this writer was opened before the process forked; open one here"));
    }
    return *shared->value();
  }
  // Waits for files under way and removes what is not finished.
  void abandon() {
    if (!shared) return;
    const GilRelease release;
    shared.reset();
  }
};

WriterHandle make_writer(const std::string& url, const store::StoreOptions& store,
                         const std::string& format, const Columns& columns,
                         std::uint64_t size_limit, std::vector<std::string> hashes, bool overwrite,
                         std::size_t threads) {
  loader::DatasetWriterOptions options;
  options.format = format;
  options.overwrite = overwrite;
  options.store = store;
  options.writer.size_limit = size_limit;
  options.writer.hashes = std::move(hashes);
  for (const auto& [name, encoding] : columns) options.writer.columns.push_back({name, encoding});
  auto runtime = std::make_shared<Runtime>(threads);
  auto made = run_interruptibly([url, options, runtime] {
    return loader::DatasetWriter::create(url, options, runtime->store_deps());
  });
  return WriterHandle(std::make_unique<SharedWriter>(std::move(runtime), check(std::move(made))));
}

// Values of one sample, with their memory held for the time of the call.
class HeldValues {
 public:
  explicit HeldValues(const nb::list& values) {
    // The views are released one by one in the destructor, so none may move.
    views_.reserve(nb::len(values));
    for (const nb::handle value : values) add(value);
  }
  HeldValues(const HeldValues&) = delete;
  HeldValues& operator=(const HeldValues&) = delete;
  ~HeldValues() {
    for (Py_buffer& view : views_) PyBuffer_Release(&view);
  }
  const std::vector<format::FieldValue>& values() const { return values_; }

 private:
  void add(nb::handle value) {
    format::FieldValue& out = values_.emplace_back();
    if (value.is_none()) return;
    using Encoded = std::pair<std::string, std::vector<std::uint64_t>>;
    const auto parts = nb::cast<nb::tuple>(value);
    const Encoded type(nb::cast<std::string>(parts[1]),
                       nb::cast<std::vector<std::uint64_t>>(parts[2]));
    Py_buffer view;
    if (PyObject_GetBuffer(nb::object(parts[0]).ptr(), &view, PyBUF_C_CONTIGUOUS) != 0) {
      throw nb::python_error();
    }
    views_.push_back(view);
    out.is_null = false;
    out.bytes = {static_cast<const std::byte*>(view.buf), static_cast<std::size_t>(view.len)};
    if (type.first.empty()) return;
    const auto dtype = format::dtype_from_name(type.first);
    if (!dtype) raise(invalid_argument("there is no dtype \"" + type.first + "\""));
    if (type.second.size() > format::kDimensionsMax) {
      raise(invalid_argument("an array of " + std::to_string(type.second.size()) +
                             " dimensions; at most " + std::to_string(format::kDimensionsMax)));
    }
    out.dtype = *dtype;
    out.dimensions = static_cast<std::uint8_t>(type.second.size());
    for (std::size_t d = 0; d < type.second.size(); ++d) out.shape[d] = type.second[d];
  }

  std::vector<Py_buffer> views_;
  std::vector<format::FieldValue> values_;
};

void add_sample(const WriterHandle& self, const std::string& key, const nb::list& values) {
  loader::DatasetWriter& writer = self.get();
  const HeldValues held(values);
  const Status status = [&] {
    const GilRelease release;
    return writer.write(key, held.values());
  }();
  check(status);
}

void finish(WriterHandle& self) {
  loader::DatasetWriter& writer = self.get();
  const Status status = [&] {
    const GilRelease release;
    return writer.finish();
  }();
  self.abandon();
  check(status);
}

}  // namespace

void bind_writer(nb::module_& m) {
  nb::class_<WriterHandle>(m, "Writer")
      .def_static("make", &make_writer, "url"_a, "store"_a, "format"_a, "columns"_a, "size_limit"_a,
                  "hashes"_a, "overwrite"_a, "threads"_a)
      .def_prop_ro(
          "fields",
          [](const WriterHandle& w) { return std::vector<format::Field>(w.get().schema().fields); })
      .def("add", &add_sample, "key"_a, "values"_a,
           nb::sig("def add(self, key: str, values: list[object]) -> None"))
      .def_prop_ro(
          "progress",
          [](const WriterHandle& w) {
            const auto progress = w.get().progress();
            return nb::make_tuple(progress.samples, progress.shards, progress.bytes);
          },
          nb::sig("def progress(self) -> tuple[int, int, int]"))
      .def("finish", &finish)
      .def("abort", &WriterHandle::abandon);
}

}  // namespace headrace::python
