// Work on whole data sets: making an index, holding data against its index.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "dataset.h"
#include "errors.h"
#include "gil.h"
#include "headrace/loader/indexer.h"
#include "headrace/loader/verify.h"
#include "headrace/store/blocking.h"
#include "process.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

// Reports progress to Python from a call that works without the GIL, and ends that call when the
// callback raises or a signal such as Ctrl-C arrives.
class Reporter {
 public:
  explicit Reporter(const nb::object& callback) : callback_(callback) {}

  std::stop_token stop() const { return stop_.get_token(); }
  std::function<void(std::uint64_t, std::uint64_t)> function() {
    return [this](std::uint64_t done, std::uint64_t total) { report(done, total); };
  }
  // What the callback or a signal handler raised, to be raised again.
  void rethrow() {
    if (!raised_) return;
    nb::python_error error(std::move(*raised_));
    raised_.reset();
    throw error;
  }

 private:
  void report(std::uint64_t done, std::uint64_t total) {
    if (raised_) return;
    const nb::gil_scoped_acquire acquire;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!callback_.is_none()) callback_(done, total);
    } catch (nb::python_error& error) {
      raised_.emplace(std::move(error));
      stop_.request_stop();
    }
  }

  nb::object callback_;
  std::stop_source stop_;
  std::optional<nb::python_error> raised_;
};

// Reads the shards `names` below `root`, and saves the index as `place_name` below `place_root`.
nb::tuple index_shards(const std::string& root, std::vector<std::string> names,
                       const std::string& place_root, const std::string& place_name, bool overwrite,
                       const store::StoreOptions& options, std::size_t threads,
                       const nb::object& progress) {
  Runtime runtime(threads);
  const store::Blocking how{runtime.executor(), options.request_timeout};
  Reporter reporter(progress);
  loader::IndexerOptions indexer;
  indexer.shards = std::move(names);
  indexer.stream.timeout = options.request_timeout;
  indexer.stream.stop = reporter.stop();
  indexer.progress = reporter.function();
  Result<loader::BuiltIndex> built = internal_error("not begun");
  {
    const GilRelease release;
    built = [&]() -> Result<loader::BuiltIndex> {
      HR_ASSIGN(auto place, store::open_store(place_root, options, runtime.store_deps()));
      // Seen before hours of reading rather than after them; put() settles races.
      if (!overwrite && store::head(*place, how, place_name).is_ok()) {
        return invalid_argument(place->describe(place_name) +
                                " is there already; overwrite=True replaces it");
      }
      HR_ASSIGN(auto source, store::open_store(root, options, runtime.store_deps()));
      HR_ASSIGN(auto index, loader::build_index(*source, runtime.executor(), indexer));
      source->close();
      if (indexer.stream.stop.stop_requested()) return cancelled("indexing was stopped");
      HR_TRY(store::put(*place, how, place_name, std::string(index.bytes), !overwrite).status());
      place->close();
      return index;
    }();
  }
  reporter.rethrow();
  const loader::BuiltIndex index = check(std::move(built));
  return nb::make_tuple(index.shards, index.samples, index.stored_bytes);
}

nb::tuple verify(const DatasetHandle& self, std::size_t threads, double timeout,
                 std::size_t problems_max, const nb::object& progress) {
  loader::Dataset& dataset = self.get();
  Runtime runtime(threads);
  Reporter reporter(progress);
  loader::VerifyOptions options;
  options.stream.timeout = seconds_to_duration(timeout, "timeout");
  options.stream.stop = reporter.stop();
  options.problems_max = problems_max;
  options.progress = reporter.function();
  auto done = [&] {
    const GilRelease release;
    return loader::verify_dataset(dataset.store(), dataset.reader(), runtime.executor(), options);
  }();
  reporter.rethrow();
  const loader::VerifyReport report = check(std::move(done));
  nb::list problems;
  for (const loader::Problem& problem : report.problems) {
    problems.append(nb::make_tuple(problem.object, problem.sample, problem.offset, problem.what));
  }
  return nb::make_tuple(problems, report.problems_left_out);
}

}  // namespace

void bind_tools(nb::module_& m) {
  m.def(
      "index_shards", &index_shards, "root"_a, "names"_a, "place_root"_a, "place_name"_a,
      "overwrite"_a, "store"_a, "threads"_a, "progress"_a = nb::none(),
      nb::sig("def index_shards(root: str, names: Sequence[str], place_root: str, place_name: str, "
              "overwrite: bool, store: StoreOptions, threads: int, "
              "progress: object | None = None) -> tuple[int, int, int]"));
  m.def("verify", &verify, "dataset"_a, "threads"_a, "timeout"_a, "problems_max"_a,
        "progress"_a = nb::none(),
        nb::sig("def verify(dataset: Dataset, threads: int, timeout: float, problems_max: int, "
                "progress: object | None = None) "
                "-> tuple[list[tuple[str, int | None, int | None, str]], int]"));
}

}  // namespace headrace::python
