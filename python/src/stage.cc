#include "stage.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "process.h"

namespace nb = nanobind;

namespace headrace::python {

namespace {

thread_local bool t_in_stage = false;

struct InStage {
  InStage() { t_in_stage = true; }
  ~InStage() { t_in_stage = false; }
  InStage(const InStage&) = delete;
  InStage& operator=(const InStage&) = delete;
};

}  // namespace

bool is_in_stage() { return t_in_stage; }

PythonStage::PythonStage(nb::object run, std::size_t credits)
    : run_(std::move(run)), credits_(credits) {}

PythonStage::~PythonStage() {
  if (interpreter_is_ending()) {
    run_.release();  // the interpreter frees its memory itself
    return;
  }
  const nb::gil_scoped_acquire acquire;
  run_.reset();
}

Result<loader::StageOutput> PythonStage::call(const loader::SampleChunk& chunk) {
  const nb::gil_scoped_acquire acquire;
  const InStage in_stage;
  try {
    const nb::object run = run_();
    if (run.is_none()) return cancelled("the loader is gone");
    // The slot is writable, and until `done` is called nobody else looks at it.
    BatchHandle batch(std::const_pointer_cast<loader::Batch>(chunk.batch));
    const nb::object made = run(std::move(batch), chunk.seed, chunk.epochs);
    using Failed = std::vector<std::pair<std::uint64_t, std::string>>;
    auto [number, failed, wrong] = nb::cast<std::tuple<std::uint64_t, Failed, std::string>>(made);
    if (!wrong.empty()) return invalid_argument(std::move(wrong));
    loader::StageOutput output;
    output.value = std::make_shared<std::uint64_t>(number);
    for (auto& [row, message] : failed) {
      output.failed.emplace_back(row, invalid_argument(std::move(message)));
    }
    return output;
  } catch (const nb::python_error& error) {
    return internal_error(std::string("the transform stage failed: ") + error.what());
  } catch (const nb::cast_error&) {
    return internal_error("the transform stage returned something else than it should");
  }
}

void PythonStage::submit(loader::SampleChunk chunk, loader::StageDone done) {
  if (interpreter_is_ending()) {
    done(cancelled("the interpreter ends"));
    return;
  }
  Result<loader::StageOutput> output = call(chunk);
  chunk.batch.reset();
  done(std::move(output));
}

}  // namespace headrace::python
